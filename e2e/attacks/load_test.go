package attacks

import (
	"fmt"
	"testing"
	"time"

	"akri.sh/akri/kubebox/clustertest"
)

// maxAnswer bounds how long another user waits for admission next to an attack, on a machine
// that answers within a tenth of a second otherwise.
const maxAnswer = 2 * time.Second

// large is a Configuration of a few kilobytes whose templates render to tens of
// megabytes.
func large(name string, templates int) object {
	var instance, group []string
	for i := range templates {
		data := `{{ repeat 30000 "abcdefgh" }}`
		instance = append(instance, configMap(fmt.Sprintf("{{INSTANCE_NAME}}-%d", i), data))
		group = append(group, configMap(fmt.Sprintf("%s-%d", name, i), data))
	}
	return configuration(name, spec{devices: []string{"d"}, instance: instance, group: group})
}

// What one author stores does not stop the controller, or the devices of others in
// another namespace.
func TestLargeTenant(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	attacker := w.as("attacker", configurationsOnly, writes("", "configmaps"))
	c := large("tenant", 16)
	several := configuration("x", spec{devices: []string{"a", "b", "c", "d"}})
	c.set(several.at("spec", "discoveryHandler"), "spec", "discoveryHandler")
	w.must(attacker.create(c))
	w.instances("tenant", 4)
	began := time.Now() // while the controller creates the tenant's objects
	other := newWorld(t)
	other.start(configuration("small", spec{devices: []string{"s"}, instance: []string{configMap("{{INSTANCE_NAME}}", "v")}}), 1)
	took := time.Since(began)
	t.Logf("another Configuration was Ready after %v", took.Round(time.Millisecond))
	if took > 10*time.Second {
		t.Errorf("another Configuration was Ready only after %v", took)
	}
}
