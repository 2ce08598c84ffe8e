package controller_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
)

// TestDisplayNames checks what the status of an Instance tells people about the device.
func TestDisplayNames(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.Apply(brokers)
	properties := map[string]string{"AKRI_DISPLAY_NAME": "camera\nat the gate", "ROOM": "hall"}
	cam := c.Instance("cfg", "cfg-cam", properties)
	is := func(name string, free int32) {
		t.Helper()
		c.Eventually("display name and free slots", func() string {
			var instance v0.Instance
			if err := c.Get(t.Context(), c.Key("cfg-cam"), &instance); err != nil {
				return err.Error()
			}
			if s := instance.Status; s.DisplayName != name || s.FreeSlots == nil || *s.FreeSlots != free {
				return fmt.Sprintf("%+v", s)
			}
			return ""
		})
	}
	capacity := cam.Spec.Capacity
	is("camera at the gate", capacity)
	c.rolledOut("cfg-cam")

	claim := []byte(`{"spec":{"deviceUsage":{"cfg-cam-0":"node-a"}}}`)
	if err := c.Patch(t.Context(), cam, client.RawPatch(types.MergePatchType, claim)); err != nil {
		t.Fatal(err)
	}
	is("camera at the gate", capacity-1)

	edit := func(template string) {
		t.Helper()
		configuration := &v0.Configuration{}
		configuration.Namespace, configuration.Name = c.Namespace, "cfg"
		patch := []byte(fmt.Sprintf(`{"spec":{"displayName":%q}}`, template))
		if err := c.Patch(t.Context(), configuration, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
	edit("{{ INSTANCE_PROPERTIES.ROOM | upper }}, {{ CAPACITY }}")
	is(fmt.Sprint("HALL, ", capacity), capacity-1)
	edit("{{ INSTANCE_PROPERTIES.FLOOR }}") // which the device does not have
	is("camera at the gate", capacity-1)
}
