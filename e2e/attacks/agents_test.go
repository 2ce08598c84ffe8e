package attacks

import (
	"fmt"
	"strings"
	"testing"

	"akri.sh/akri/kubebox/clustertest"
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

// An agent may not choose the image of the brokers on other nodes, although the
// template takes it from a property.
func TestAgentChoosesAnImage(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	w.start(configuration("image", spec{devices: []string{"akri.local/workload:1"}, instance: []string{`
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{INSTANCE_NAME}}"}
data: {image: "{{INSTANCE_PROPERTIES.DEBUG_ECHO_DESCRIPTION}}"}
`}}), 1)
	instance := w.instances("image", 1)[0]
	other := w.agentOf("node-b")
	for _, patch := range []string{
		"spec: {nodes: [node1, node-b], brokerProperties: {DEBUG_ECHO_DESCRIPTION: evil}}",
		"spec: {nodes: [node-b, node1], brokerProperties: {DEBUG_ECHO_DESCRIPTION: evil}}",
	} {
		w.refuse("the image", other.patch("Instance", w.namespace, instance.name(), patch))
	}
	w.must(other.patch("Instance", w.namespace, instance.name(), "spec: {nodes: [node1, node-b]}"))
	w.refuse("the image, in a second step", other.patch("Instance", w.namespace, instance.name(),
		"spec: {brokerProperties: {DEBUG_ECHO_DESCRIPTION: evil}}"))
	w.converged("after-image")
	if image := w.find("ConfigMap", instance.name()).text("data", "image"); image != "akri.local/workload:1" {
		t.Errorf("the image is %s", image)
	}
}

// A user who may write Instances does not instantiate others' templates with
// properties of their choice.
func TestInventedInstance(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	w.start(configuration("invented", spec{devices: []string{"real"}, instance: []string{
		configMap("{{INSTANCE_NAME}}", "{{INSTANCE_PROPERTIES.DEBUG_ECHO_DESCRIPTION}}"),
	}}), 1)
	instance := w.instances("invented", 1)[0]
	u := w.as("user", rule{"akri.sh", "instances", "get,list,create,patch,update,delete"})
	w.refuse("control: the object itself", u.create(parse(configMap("x", "v"))))
	w.refuse("an invented Instance", u.create(parse(`
apiVersion: akri.sh/v0
kind: Instance
metadata: {name: invented-abcdef, labels: {akri.sh/configuration: invented}}
spec:
  configurationName: invented
  cdiName: akri.sh/invented=abcdef
  capacity: 1
  nodes: [node1]
  brokerProperties: {DEBUG_ECHO_DESCRIPTION: evil}
`)))
	w.refuse("invented properties", u.patch("Instance", w.namespace, instance.name(),
		"spec: {brokerProperties: {DEBUG_ECHO_DESCRIPTION: evil}}"))
	w.converged("after-invented")
	w.absent("ConfigMap", "invented-abcdef")
	if value := w.find("ConfigMap", instance.name()).text("data", "k"); value != "real" {
		t.Errorf("the object has the value %s", value)
	}
}

// An Instance's name belongs to its Configuration: nobody occupies the names, and thus
// the resources, of another one.
func TestInstanceNames(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	agent := w.agentOf("node1")
	w.must(w.admin.create(configuration("names", spec{})))
	for what, name := range map[string]string{
		"another Configuration's name": "others-abcdef", "its name without a hash": "names", "a longer name": "namesabcdef",
	} {
		w.refuse(what, agent.create(parse(fmt.Sprintf(`
apiVersion: akri.sh/v0
kind: Instance
metadata: {name: %s}
spec: {configurationName: names, cdiName: akri.sh/names=abcdef, capacity: 1, nodes: [node1]}
`, name)), "dryRun", "All"))
	}
	w.must(agent.create(parse(`
apiVersion: akri.sh/v0
kind: Instance
metadata: {name: names-abcdef}
spec: {configurationName: names, cdiName: akri.sh/names=abcdef, capacity: 1, nodes: [node1]}
`), "dryRun", "All"))
}

// Two Configurations of one name, in two namespaces: the second is refused, and
// agents serve only the first, even where admission was skipped.
func TestOccupiedName(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	w.start(configuration("occupied", spec{devices: []string{"first"}}), 1)
	second := newWorld(t)
	author := second.as("author", configurationsOnly)
	a := author.create(configuration("occupied", spec{devices: []string{"second"}}))
	second.refuse("the name", a)
	if a.contains(w.namespace) {
		t.Errorf("the answer names the other namespace: %v", a)
	}
	second.skipWebhook()
	second.must(author.create(configuration("occupied", spec{devices: []string{"second"}})))
	second.converged("after-occupied")
	if found := len(second.list("Instance", second.namespace)); found > 1 { // after-occupied's may still go
		t.Errorf("the second Configuration has Instances: %d", found)
	}
	w.instances("occupied", 1)
}
