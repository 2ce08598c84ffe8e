package attacks

import (
	"fmt"
	"strings"
	"testing"
)

// sharedInstance is an Instance that node1's agent has published for a Configuration.
func (w *world) sharedInstance(name string) object {
	w.t.Helper()
	w.start(configuration(name, spec{
		devices: []string{name}, instance: []string{configMap("{{INSTANCE_NAME}}", "{{INSTANCE_PROPERTIES.DEBUG_ECHO_DESCRIPTION}}")},
	}), 1)
	return w.instances(name, 1)[0]
}

// The agent of one node changes nothing that containers on other nodes trust.
func TestAgentOfAnotherNode(t *testing.T) {
	w := newWorld(t)
	instance := w.sharedInstance("agents")
	other := w.agentOf("node-b")
	join := "nodes: [node1, node-b]"
	for what, patch := range map[string]string{
		"properties":                "spec: {%s, brokerProperties: {DEBUG_ECHO_DESCRIPTION: evil}}",
		"further properties":        "spec: {%s, brokerProperties: {LD_PRELOAD: evil}}",
		"no properties":             "spec: {%s, brokerProperties: null}",
		"the Configuration":         "spec: {%s, configurationName: another}",
		"the CDI name":              "spec: {%s, cdiName: akri.sh/x=y}",
		"the capacity":              "spec: {%s, capacity: 100}",
		"shared":                    "spec: {%s, shared: false}",
		"the order of nodes":        "spec: {nodes: [node-b, node1]}",
		"only itself":               "spec: {nodes: [node-b]}",
		"a third node":              "spec: {nodes: [node1, node-b, node-c]}",
		"another's slot":            "spec: {%s, deviceUsage: {" + instance.name() + "-0: node1}}",
		"another's group slot":      "spec: {%s, deviceUsage: {" + instance.name() + "-0: 'C:0:node1'}}",
		"the owner":                 "{metadata: {ownerReferences: null}, spec: {%s}}",
		"the Configuration's label": "{metadata: {labels: {akri.sh/configuration: another}}, spec: {%s}}",
		"the device's ID":           "{metadata: {annotations: {akri.sh/device-id: another}}, spec: {%s}}",
		"another node's label":      "{metadata: {labels: {node.akri.sh/node1: null}}, spec: {%s}}",
		"a finalizer":               "{metadata: {finalizers: [example.com/hold]}, spec: {%s}}",
	} {
		t.Run(what, func(t *testing.T) {
			w := w.sub(t)
			w.refuse("an agent that changes "+what,
				other.patch("Instance", w.namespace, instance.name(), strings.ReplaceAll(patch, "%s", join)))
		})
	}
	w.refuse("deletion by another node's agent", other.delete("Instance", w.namespace, instance.name()))
	w.refuse("a status by an agent", other.patch("Instance/status", w.namespace, instance.name(), "status: {resources: []}"))
	w.refuse("another node's failures", other.patch("Configuration/status", w.namespace, "agents",
		"status: {discoveryFailures: [{node: node1, discoveryHandlerName: x, message: x}]}"))
	w.refuse("a Configuration's conditions", other.patch("Configuration/status", w.namespace, "agents",
		"status: {instances: 100}"))

	w.must(other.patch("Instance", w.namespace, instance.name(),
		"{metadata: {labels: {node.akri.sh/node-b: ''}}, spec: {"+join+"}}")) // control: its own part
	w.must(other.patch("Instance", w.namespace, instance.name(), fmt.Sprintf("spec: {deviceUsage: {%s-0: node-b}}", instance.name())))
	w.must(other.patch("Instance", w.namespace, instance.name(), fmt.Sprintf("spec: {deviceUsage: {%s-0: ''}}", instance.name())))
	w.must(other.patch("Instance", w.namespace, instance.name(),
		"{metadata: {labels: {node.akri.sh/node-b: null}}, spec: {nodes: [node1]}}"))
	if now := w.find("Instance", instance.name()); now.text("spec", "brokerProperties", "DEBUG_ECHO_DESCRIPTION") != "agents" {
		t.Errorf("the Instance has changed: %s", now.json())
	}
}
