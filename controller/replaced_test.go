package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v0 "akri.sh/akri/api/v0"
)

// A Configuration that is deleted and created again while the watch is interrupted is another
// one, although it has the same name, content and generation.
func TestConfigurationReplacedUnseen(t *testing.T) {
	former := &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "cfg", UID: "1", Generation: 1}}
	for uid, want := range map[string]bool{"1": false, "2": true} {
		now := former.DeepCopy()
		now.UID = types.UID(uid)
		for _, each := range []predicate.TypedFuncs[*v0.Configuration]{generationChanged, generationOrDiscoveryChanged} {
			if got := each.Update(event.TypedUpdateEvent[*v0.Configuration]{ObjectOld: former, ObjectNew: now}); got != want {
				t.Errorf("UID %s is reconciled: %t, want %t", uid, got, want)
			}
		}
	}
}
