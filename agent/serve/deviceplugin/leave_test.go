package deviceplugin_test

import (
	"testing"
	"time"

	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/internal/kubelettest"
)

// A node that no longer sees a device keeps its label while its container has the slot.
// Its agent releases the slot even if it has restarted in between.
func TestRestartAfterTheNodeHasLeft(t *testing.T) {
	w := newWorld(t)
	w.instance("cam-f1f1f1", "node-a", "node-b")
	k := kubelettest.Start(t, kubelettest.Options{})
	a := w.agent("node-a", k)
	a.publish(w.device("cam-f1f1f1", 1))
	k.Await("akri.sh/cam-f1f1f1", count(plugin.Healthy, 1))
	pod := admit(t, k, "p", "cam-f1f1f1")
	a.publish()
	a.stop()
	w.agent("node-a", k) // the device is not published
	w.stays("cam-f1f1f1", 0, "node-a", 3*time.Second)
	k.End(pod)
	w.becomes("cam-f1f1f1", 0, "", 12*time.Second)
}
