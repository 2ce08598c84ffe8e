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
	for want, origin := range map[string]templating.Origin{
		"spec.name-1":                          {Index: 1},
		"spec.name-11 (node-a)":                {Index: 11, Element: "node-a"},
		"spec.instanceBrokerResources[12]":     {Index: 12},
		"spec.instanceBrokerResources":         {Index: -1},
		"spec.configurationBrokerResources[1]": {Level: templating.ConfigurationLevel, Index: 1},
	} {
		if got := compiled.Place(origin); got != want {
			t.Errorf("the place of %s is %s, want %s", origin, got, want)
		}
	}
}
