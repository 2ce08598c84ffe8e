package controller_test

import (
	"fmt"
	"testing"
	"time"

	v0 "akri.sh/akri/api/v0"
)

// TestTemporary has Configurations of kubectl akri discover: what a killed command has left goes when its time is over.
func TestTemporary(t *testing.T) {
	c := newCluster(t)
	for name, until := range map[string]string{
		"over":  "1",
		"soon":  fmt.Sprint(time.Now().Add(2 * time.Second).Unix()),
		"later": fmt.Sprint(time.Now().Add(time.Hour).Unix()),
		"other": "tomorrow",
	} {
		temporary := configuration(name)
		temporary.Spec = v0.ConfigurationSpec{DiscoveryHandler: v0.DiscoveryHandler{Name: "debugEcho"}, Capacity: 1}
		temporary.Namespace, temporary.Labels = c.Namespace, map[string]string{v0.LabelDiscoverUntil: until}
		if err := c.Create(t.Context(), temporary); err != nil {
			t.Fatal(err)
		}
	}
	apiVersion := v0.GroupVersion.String()
	c.gone(apiVersion, "Configuration", "over")
	c.gone(apiVersion, "Configuration", "soon")
	for _, name := range []string{"later", "other"} {
		if left := c.object(apiVersion, "Configuration", name); left == nil || left.GetDeletionTimestamp() != nil {
			t.Errorf("Configuration %s is deleted", name)
		}
	}
}
