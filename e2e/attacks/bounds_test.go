package attacks

import (
	"fmt"
	"strings"
	"testing"

	"akri.sh/akri/kubebox/clustertest"
)

// Lists and maps of a Configuration are bounded, in number and in size.
func TestBoundsOfConfigurations(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	author := w.as("author", configurationsOnly, rule{"", "secrets", "get"})
	property := func(i int) string {
		return fmt.Sprintf("{name: P%d, valueFrom: {secretKeyRef: {name: s%d, key: k}}}", i, i)
	}
	var references []string
	for i := range 256 {
		references = append(references, property(i))
	}
	withProperties := func(field string, count, size int) object {
		c := configuration("bounds", spec{devices: []string{"d"}})
		c["spec"].(map[string]any)[field] = properties(count, size)
		return c
	}
	handler := func(more string) object {
		return configuration("bounds", spec{more: "{discoveryHandler: {name: none, " + more + "}}"})
	}
	for what, c := range map[string]object{
		"a megabyte of brokerProperties": withProperties("brokerProperties", 1000, 1200),
		"a long brokerProperty":          withProperties("brokerProperties", 1, 1_000_000),
		"a megabyte of sampleProperties": withProperties("sampleProperties", 1000, 1200),
		"256 references to Secrets":      handler("discoveryProperties: [" + strings.Join(references, ", ") + "]"),
		"a long discoveryProperty":       handler("discoveryProperties: [{name: P, value: " + strings.Repeat("x", 1_000_000) + "}]"),
		"a long property name": withProperties("brokerProperties", 0, 0).
			set("x", "spec", "brokerProperties", strings.Repeat("K", 100_000)),
	} {
		w.refuse(what, author.create(c, "dryRun", "All"))
	}
	for what, c := range map[string]object{
		"fifty properties":       withProperties("brokerProperties", 50, 100),
		"a few references":       handler("discoveryProperties: [" + strings.Join(references[:4], ", ") + "]"),
		"fifty sampleProperties": withProperties("sampleProperties", 50, 100),
	} {
		if a := author.create(c, "dryRun", "All"); !a.ok() {
			t.Errorf("control: %s: %v", what, a)
		}
	}
}

// set sets a value under keys, and returns the object.
func (o object) set(value any, keys ...string) object {
	fields := map[string]any(o)
	for _, key := range keys[:len(keys)-1] {
		fields = fields[key].(map[string]any)
	}
	fields[keys[len(keys)-1]] = value
	return o
}

// Instances are bounded, too: an agent writes what a device reports.
func TestBoundsOfInstances(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	w.must(w.admin.create(configuration("bounds-i", spec{})))
	agent := w.agentOf("node1")
	instance := func() object {
		return parse(`
apiVersion: akri.sh/v0
kind: Instance
metadata: {name: bounds-i-abcdef}
spec: {configurationName: bounds-i, cdiName: akri.sh/bounds-i=abcdef, capacity: 1, nodes: [node1]}
`)
	}
	for what, o := range map[string]object{
		"a megabyte of properties": instance().set(properties(1000, 1200), "spec", "brokerProperties"),
		"a long property":          instance().set(properties(1, 1_000_000), "spec", "brokerProperties"),
		"a large capacity":         instance().set(1_000_000, "spec", "capacity"),
		"a long node name":         instance().set([]string{"node1", strings.Repeat("x", 100_000)}, "spec", "nodes"),
	} {
		w.refuse(what, agent.create(o, "dryRun", "All"))
	}
	w.must(agent.create(instance().set(properties(50, 100), "spec", "brokerProperties"), "dryRun", "All"))
}

// A Configuration that would make more objects than a status can list makes none, or
// as many as the status lists, and says so.
func TestOverflowingInventory(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	nodes := make([]string, 1000)
	for i := range nodes {
		nodes[i] = fmt.Sprintf("node-%d", i)
	}
	nodes[0] = ghost
	var templates []string
	for i := range 8 * long() {
		templates = append(templates, annotated(fmt.Sprintf(
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{INSTANCE_NAME}}-%d-%s-{{NODE}}'}}",
			i,
			strings.Repeat("x", 200),
		), "for-each", "NODES"))
	}
	w.must(w.admin.create(configuration("overflow", spec{instance: templates})))
	w.must(w.admin.create(parse(`
apiVersion: akri.sh/v0
kind: Instance
metadata: {name: overflow-abcdef, labels: {akri.sh/configuration: overflow}}
spec: {configurationName: overflow, cdiName: akri.sh/overflow=abcdef, capacity: 1, shared: true, nodes: []}
`).set(nodes, "spec", "nodes")))
	var found object
	w.eventually("a report on the Instance", func() string {
		if found = w.find("Instance", "overflow-abcdef"); found.condition("Applied") == "" {
			return "none"
		}
		return ""
	})
	made := len(w.list("ConfigMap", w.namespace))
	entries, _ := found.at("status", "resources").([]any)
	t.Logf("%d objects, %d entries, %s", made, len(entries), found.condition("Applied"))
	if condition := found.condition("Applied"); !strings.HasPrefix(condition, "False") {
		t.Errorf("%d objects for one Instance: %s", 1000*len(templates), condition)
	}
	if made > len(entries)+1 { // and kube-root-ca.crt
		t.Errorf("%d objects exist, but the status lists %d", made, len(entries))
	}
}
