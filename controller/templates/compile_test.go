package templates

import (
	"fmt"
	"testing"

	"akri.sh/akri/templating"
)

// A place is found by its index, however many templates there are.
func TestPlace(t *testing.T) {
	compiled := &Templates{names: map[templating.Level][]string{}}
	for i := range 12 {
		compiled.names[templating.InstanceLevel] = append(compiled.names[templating.InstanceLevel], fmt.Sprintf("name-%d", i))
	}
	for origin, want := range map[string]string{
		"instanceBrokerResources[1]":                "name-1",
		"instanceBrokerResources[11]":               "name-11",
		"instanceBrokerResources[11] (node-a).spec": "name-11 (node-a).spec",
		"instanceBrokerResources[12]":               "instanceBrokerResources[12]",
		"instanceBrokerResources[x]":                "instanceBrokerResources[x]",
		"configurationBrokerResources[1]":           "configurationBrokerResources[1]",
		"instanceBrokerResources":                   "instanceBrokerResources",
	} {
		if got := compiled.Place(templating.InstanceLevel, origin); got != want {
			t.Errorf("the place of %s is %s, want %s", origin, got, want)
		}
	}
}
