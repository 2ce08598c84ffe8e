package webhook

import (
	"strings"
	"testing"
)

// Authors are warned of PersistentVolumeClaims that go with the devices.
func TestVolumes(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	claim := func(policy string) string {
		return `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: "{{ CONFIGURATION_NAME }}-data"` + policy + `}, ` +
			`spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`
	}
	const remedy = "annotate it akri.sh/deletion-policy: orphan"
	for name, tc := range map[string]struct{ instance, group, want string }{
		"for all devices": {group: claim(""), want: "spec.configurationBrokerResources[0]: the PersistentVolumeClaim is deleted when the " +
			"last device disappears, even for a moment, and its data with it; " + remedy},
		"for each device": {instance: strings.Replace(claim(""), "CONFIGURATION_NAME", "INSTANCE_NAME", 1),
			want: "spec.instanceBrokerResources[0]: the PersistentVolumeClaim is deleted when its device disappears, and its data with it; " +
				remedy},
		"kept":               {group: claim(`, annotations: {akri.sh/deletion-policy: orphan}`)},
		"deleted on purpose": {group: claim(`, annotations: {akri.sh/deletion-policy: delete}`)},
		"another kind":       {instance: aConfigMap},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, admin.apply(configuration(tc.instance, tc.group)), "")
			if warnings := admin.warnings.take(); !strings.Contains(warnings, tc.want) || tc.want == "" && warnings != "" {
				t.Errorf("warned: %q, want %q", warnings, tc.want)
			}
		})
	}
}
