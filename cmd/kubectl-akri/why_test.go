package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWhyOfOtherObjects explains a Configuration, Pods, and objects that Akri created.
func TestWhyOfOtherObjects(t *testing.T) {
	w := newWorld(t)
	w.installed()
	w.startController()
	w.Apply(example)
	instance := w.Instance("cam", "cam-1", map[string]string{"TEXT": "foo", "ROOM": "hall"})
	w.waitReady("cam")
	if err := w.Patch(t.Context(), instance, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"deviceUsage":{"cam-1-0":"C:0:node-a"}}}`))); err != nil {
		t.Fatal(err)
	}
	w.createPods(t)
	w.Apply(`
apiVersion: v1
kind: Pod
metadata: {name: any, annotations: {a: b}}
spec: {nodeName: node-a, containers: [{name: a, image: a, resources: {limits: {akri.sh/cam: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: lost}
spec: {containers: [{name: a, image: a, resources: {limits: {akri.sh/none: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: broker, labels: {akri.sh/configuration: cam, akri.sh/instance: cam-1, akri.sh/level: instance}}
spec: {containers: [{name: a, image: a}]}
---
apiVersion: v1
kind: Pod
metadata: {name: group}
spec: {containers: [{name: a, image: a}]}
`)
	configuration := "Configuration " + w.Namespace + "/cam  Ready"
	for _, args := range [][]string{{"cam"}, {"configuration/cam"}, {"akric", "cam"}} {
		w.run("", append([]string{"why"}, args...)...).want(t, 0, configuration, "handler    debugEcho", "devices    1 Instance, 1 ready",
			"resource   akri.sh/cam, for any of the devices: 0 of 1 slot free", "Instance cam-1  on node-a  Ready, 0 of 1 slot free",
			"ConfigMap group  ready", "Pods that request akri.sh/cam:\n  Pod any  on node-a", "Conclusion:\n  No problem found", "!Instance \"cam\"")
	}
	w.run("", "why", "configuration/nope").want(t, 1, `no Configuration "nope"`)
	w.run("", "why", "instance/cam").want(t, 1, `no Instance "cam"`)

	// Objects that Akri created.
	w.run("", "why", "cam-1-svc").want(t, 0, "Service "+w.Namespace+"/cam-1-svc  ready", "for        Instance "+w.Namespace+"/cam-1",
		"selects    Pod broker", "Instance "+w.Namespace+"/cam-1  Ready", "Conclusion:")
	var broker corev1.Pod
	w.Read("broker", &broker)
	if err := w.Delete(t.Context(), &broker, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	w.run("", "why", "svc", "cam-1-svc").want(t, 0,
		"selects    no Pod: none has the labels akri.sh/configuration=cam, akri.sh/instance=cam-1, akri.sh/level=instance")
	w.run("", "why", "cm/group").want(t, 0, "ConfigMap "+w.Namespace+"/group  ready", "for        Configuration "+w.Namespace+"/cam",
		configuration)

	// Pods that request devices.
	w.run("", "why", "waiter").want(t, 0, "Pod "+w.Namespace+"/waiter  on no node yet", "requests   1 of akri.sh/cam-1, Instance "+
		w.Namespace+"/cam-1: 0 of 1 slot free", "slot       cam-1-0  used on node-a through akri.sh/cam (id 0)  by Pod any",
		"Pod waiter  FailedScheduling: no room", "Pod waiter waits for akri.sh/cam-1: the only slot is in use on node-a (Pod any).")
	w.run("", "why", "pod/any").want(t, 0, "requests   1 of akri.sh/cam, any device of Configuration "+w.Namespace+"/cam: 0 of 1 slot free",
		"slot       cam-1-0 used on node-a through akri.sh/cam (id 0)  by Pod any", "No problem found")
	w.run("", "why", "lost").want(t, 0, "akri.sh/none, which does not exist", "there is no Instance or Configuration none")

	// Names that are not clear.
	w.run("", "why", "group").want(t, 1, `error: "group" is the name of 2 objects: specify one of configmap/group, pod/group`)
	w.run("", "why", "stranger").want(t, 1, "error: Pod "+w.Namespace+"/stranger was not created by Akri")
	w.run("", "why", "zebra/x").want(t, 1, `does not have a resource type "zebra"`)
	run(t, "", "why", "a/b/c").want(t, 2, "error: specify a name")
	run(t, "", "why", "/b").want(t, 2, "error: specify a name")
}
