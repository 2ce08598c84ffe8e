package handlers

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/clustertest"
)

// TestEmbeddedHandlers moves the handlers onvif and opcua from their DaemonSets into the
// agents: no Instance changes, and those that the agents find by themselves are the same.
func TestEmbeddedHandlers(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t, "opcua")
	w.installHandler("onvif")
	const server = "opc.tcp://" + bridgeAddress + ":4846"
	w.peer(nil, w.plc(), "--endpoint="+server, "--name=Oven", "--temperature=50", "--setpoint=60")
	w.plugInCameras()
	manifests := fmt.Sprintf(embeddedConfigurations, w.unique("cameras"), w.unique("ovens"), server)
	discover := func() map[string]instanceView {
		w.apply(manifests)
		var found map[string]instanceView
		w.eventually("both nodes see the server and the cameras", func() string {
			found = w.instances()
			complete := len(found) == 3
			for _, each := range found {
				complete = complete && len(each.Spec.Nodes) == 2
			}
			if complete {
				return ""
			}
			return fmt.Sprint(views(found))
		})
		return found
	}

	outside := discover()
	w.moveIntoAgents("onvif", "opcua")
	if moved := w.instances(); !reflect.DeepEqual(views(moved), views(outside)) || !maps.EqualFunc(moved, outside, sameObject) {
		t.Errorf("the move has changed Instances:\nbefore %v\nafter  %v", outside, moved)
	}
	w.kubectl("delete", "configurations", "--all", "--timeout=60s")
	w.eventually("no Instances", func() string { return w.kubectl("get", "instances", "--output=name") })
	if inside := discover(); !reflect.DeepEqual(views(inside), views(outside)) {
		t.Errorf("handlers in the agents find\n%v\nthose in DaemonSets\n%v", views(inside), views(outside))
	}
}

const embeddedConfigurations = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: %s}
spec:
  discoveryHandler: {name: onvif, discoveryDetails: "{intervalSeconds: 3}"}
---
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: %s}
spec:
  discoveryHandler:
    name: opcua
    discoveryDetails: "{opcuaDiscoveryMethod: {standard: {discoveryUrls: ['%s/']}}, intervalSeconds: 1}"
`

// views returns what Instances say of their devices.
func views(instances map[string]instanceView) map[string]string {
	all := map[string]string{}
	for name, each := range instances {
		all[name] = fmt.Sprint(slices.Sorted(slices.Values(each.Spec.Nodes)), each.Spec.BrokerProperties)
	}
	return all
}

func sameObject(a, b instanceView) bool { return a.Metadata.UID == b.Metadata.UID }

// moveIntoAgents runs handlers in the agents, and not in their DaemonSets, until the test
// ends.
func (w *world) moveIntoAgents(handlers ...string) {
	w.t.Helper()
	change := func(workload, patch string) {
		w.t.Helper()
		w.kubectl("--namespace", akri.Namespace, "patch", "daemonset", workload, "--type=json", "--patch", patch)
		w.t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), 2*timeout)
			defer cancel()
			for _, command := range [][]string{{"undo"}, {"status", "--timeout=60s"}} {
				arguments := slices.Concat([]string{"--namespace", akri.Namespace, "rollout"}, command, []string{"daemonset/" + workload})
				if _, err := w.Kubectl(ctx, arguments...); err != nil {
					w.t.Error(err)
				}
			}
		})
		w.kubectl("--namespace", akri.Namespace, "rollout", "status", "--timeout=60s", "daemonset/"+workload)
	}
	// Multicast needs the network of the host.
	change("akri-agent", fmt.Sprintf(`[
		{"op": "add", "path": "/spec/template/spec/hostNetwork", "value": true},
		{"op": "add", "path": "/spec/template/spec/dnsPolicy", "value": "ClusterFirstWithHostNet"},
		{"op": "add", "path": "/spec/template/spec/containers/0/args", "value": ["--embedded-handlers=%s"]}
	]`, strings.Join(handlers, ",")))
	for _, handler := range handlers {
		change("akri-"+handler+"-discovery", `[{"op": "add", "path": "/spec/template/spec/nodeSelector", "value": {"example.com/none": ""}}]`)
	}
}
