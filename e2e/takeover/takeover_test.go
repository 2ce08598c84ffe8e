package takeover

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

// configurations are what a user of Akri has: brokers with Services, a device that a Pod
// of the user requests, and a Job.
const configurations = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cls}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [foo0]"}
  capacity: 3
  brokerProperties: {SITE: plant}
  brokerSpec:
    brokerPodSpec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: broker
        image: akri.local/workload:1
        resources: {requests: {"{{PLACEHOLDER}}": "1"}, limits: {"{{PLACEHOLDER}}": "1"}}
  instanceServiceSpec: {type: ClusterIP, ports: [{name: http, port: 80, targetPort: 6052}]}
  configurationServiceSpec: {type: ClusterIP, ports: [{name: http, port: 80, targetPort: 6052}]}
---
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: grp}
spec: {discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [bar0]"}, capacity: 2}
---
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: job}
spec: {discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [job0]"}, capacity: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  terminationGracePeriodSeconds: 1
  nodeSelector: {kubernetes.io/hostname: node1}
  containers: [{name: user, image: "akri.local/workload:1", resources: {limits: {akri.sh/grp: "1"}}}]
`

// formerJob is a Job that Akri has run for an Instance.
const formerJob = `
apiVersion: batch/v1
kind: Job
metadata:
  name: %[1]s-2-job
  labels: {akri.sh/configuration: job, akri.sh/instance: %[1]s, app: %[1]s-2-job, controller: akri.sh}
  ownerReferences: [{apiVersion: akri.sh/v0, kind: Instance, name: %[1]s, uid: %[2]s, controller: true, blockOwnerDeletion: true}]
spec:
  template:
    metadata: {labels: {akri.sh/configuration: job, akri.sh/instance: %[1]s}}
    spec: {restartPolicy: Never, containers: [{name: c, image: "akri.local/workload:1", args: [end]}]}
`

const brokerJob = `{spec: {brokerSpec: {brokerJobSpec: {template: {spec: {restartPolicy: Never, ` +
	`containers: [{name: c, image: "akri.local/workload:1", args: [end]}]}}}}}}`

func TestTakeOver(t *testing.T) {
	clustertest.Full(t)
	w := newWorldOn(t, clustertest.Shared(t, cluster.Config{Nodes: 2}))
	w.prepare()
	before := w.identities()
	held := w.owners()
	w.takeOver()
	w.assertTakenOver(before, held)
	w.devicesLeave()
	w.nextToOurs()
	w.wayBack()
	w.remove()
}

// assertTakenOver waits until our programs have taken over what Akri has made, and fails the
// test if an object was created again, a container was restarted or a slot was lost.
func (w *world) assertTakenOver(before, held map[string]string) {
	w.Helper()
	w.eventually("the Configurations are ready", func() string {
		for _, configuration := range w.list("configurations") {
			if usable := configuration.is("Ready") && configuration.is("Discovering"); !usable && configuration.Metadata.Name != dotted {
				return fmt.Sprintf("%s: %+v", configuration.Metadata.Name, configuration.Status.Conditions)
			}
		}
		return ""
	})
	w.eventually("what Akri left is finished", w.leftovers)
	delete(before, "instances/"+orphan)
	if after := w.identities(); !maps.Equal(after, before) {
		w.Errorf("before the take-over, there were\n%v\nand now\n%v", before, after)
	}
	if after := w.owners(); !maps.Equal(after, held) {
		w.Errorf("before the take-over, the slots were\n%v\nand now\n%v", held, after)
	}
	if jobs := w.list("jobs"); len(jobs) != 1 {
		w.Errorf("the Job was run again: %+v", jobs)
	}
}

const (
	orphan = "cls-0000aa"   // its device left while no agent ran
	dotted = "akri.echo.v1" // legal with Akri
	stale  = "C:grp-7:node2"
	// ofGroup owns a slot that an agent of Akri has claimed through the group.
	ofGroup = "C:grp-3:node2"
)

// prepare starts brokers, stops our programs, and leaves what Akri would have left.
func (w *world) prepare() {
	w.Helper()
	w.apply(configurations)
	w.eventually("the brokers run", func() string {
		count := 0
		for _, pod := range w.list("pods") {
			if pod.is("Ready") {
				count++
			}
		}
		if count != 3 || len(w.list("instances")) != 3 {
			return fmt.Sprintf("%d Pods are ready", count)
		}
		return ""
	})
	w.eventually("both nodes see the devices", func() string {
		for _, instance := range w.list("instances") {
			if len(instance.Spec.Nodes) != 2 {
				return fmt.Sprint(instance.Metadata.Name, instance.Spec.Nodes)
			}
		}
		return ""
	})
	w.stop(node1, node2)
	w.kubectl("delete", "validatingwebhookconfiguration,validatingadmissionpolicybinding", "--all")
	w.patchCRD("configurations.akri.sh",
		`[{op: remove, path: /spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations}]`)
	w.eventually("names with dots are accepted", func() string {
		_, err := w.KubectlInput(w.Context(), []byte(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: `+dotted+`}
spec: {discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: []"}, capacity: 1}`),
			"--namespace", namespace, "apply", "--server-side", "-f", "-")
		if err != nil {
			return err.Error()
		}
		return ""
	})
	w.original()

	cls, job := w.instance("cls"), w.instance("job")
	cls.Metadata.Name, cls.Spec.CDIName = orphan, "akri.sh/cls=0000aa"
	w.accepted("publish a device that then leaves", w.join(cls, node2))
	grp, free := w.freeSlot()
	w.accepted("claim a slot for a Pod that is gone", w.own(grp, node2, map[string]string{free: stale}))
	w.patch("configurations", "job", mergePatch, brokerJob)
	w.apply(fmt.Sprintf(formerJob, job.Metadata.Name, job.Metadata.UID))
	w.eventually("the Job has finished", func() string {
		if !w.get("jobs", job.Metadata.Name+"-2-job").is("Complete") {
			return "it has not"
		}
		return ""
	})
}

// patchCRD patches a CRD.
func (w *world) patchCRD(name, patch string) {
	w.Helper()
	if _, err := w.send(http.MethodPatch, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+name, jsonPatch, patch); err != nil {
		w.Fatal(err)
	}
}

// instance returns the only Instance of a Configuration.
func (w *world) instance(configuration string) object {
	w.Helper()
	for _, instance := range w.list("instances") {
		if instance.Spec.ConfigurationName == configuration && instance.Metadata.Name != orphan {
			return instance
		}
	}
	w.Fatalf("%s has no Instance", configuration)
	return object{}
}

// takeOver installs this project over Akri's CRDs and objects.
func (w *world) takeOver() {
	w.Helper()
	root, err := build.Root()
	if err != nil {
		w.Fatal(err)
	}
	base := filepath.Join(root, "config", "default")
	if _, err := w.Kubectl(w.Context(), "apply", "--server-side", "--force-conflicts", "-k", base); err != nil {
		w.Fatal(err)
	}
	w.start()
	took := w.offered("cls")
	w.Logf("resources were back %v after our agents were ready", took.Round(time.Millisecond))
	if took > 30*time.Second {
		w.Errorf("resources were back only after %v", took)
	}
}

// offered waits until both nodes offer the device of a Configuration.
func (w *world) offered(configuration string) time.Duration {
	w.Helper()
	resource := "akri.sh/" + w.instance(configuration).Metadata.Name
	return w.eventually("both nodes offer "+resource, func() string {
		for _, node := range []string{node1, node2} {
			if have := w.get("nodes", node).Status.Allocatable[resource]; have == "" || have == "0" {
				return fmt.Sprintf("%s has %q", node, have)
			}
		}
		return ""
	})
}

// identities returns the UIDs of all objects, and the containers of Pods with their
// restarts.
func (w *world) identities() map[string]string {
	w.Helper()
	all := map[string]string{}
	for _, kind := range []string{"configurations", "instances", "pods", "services", "jobs"} {
		for _, o := range w.list(kind) {
			text := o.Metadata.UID
			for _, container := range o.Status.ContainerStatuses {
				text += fmt.Sprintf(" %s %d", container.ContainerID, container.RestartCount)
			}
			all[kind+"/"+o.Metadata.Name] = text
		}
	}
	return all
}

// owners returns the slots that containers have.
func (w *world) owners() map[string]string {
	w.Helper()
	all := map[string]string{}
	for _, instance := range w.list("instances") {
		for slot, owner := range instance.Spec.DeviceUsage {
			if owner != "" && owner != stale {
				all[slot] = owner
			}
		}
	}
	return all
}

// leftovers returns what Akri has left and nobody has finished yet.
func (w *world) leftovers() string {
	w.Helper()
	for _, kind := range []string{"configurations", "instances"} {
		for _, o := range w.list(kind) {
			switch {
			case len(o.Metadata.Finalizers) > 0:
				return fmt.Sprintf("%s has finalizers %v", o.Metadata.Name, o.Metadata.Finalizers)
			case o.Metadata.Name == orphan:
				return "the device that left is still there"
			case slices.Contains(slices.Collect(maps.Values(o.Spec.DeviceUsage)), stale):
				return fmt.Sprintf("%s has slots %v", o.Metadata.Name, o.Spec.DeviceUsage)
			case o.Metadata.Name == dotted && !o.is("Accepted"):
				return dotted + " has no status"
			}
		}
	}
	return ""
}

// devicesLeave checks that a node that no longer sees a device leaves its Instance.
func (w *world) devicesLeave() {
	w.Helper()
	name := w.instance("job").Metadata.Name
	sees := func(nodes ...string) {
		w.Helper()
		w.eventually(fmt.Sprintf("%s is on %v", name, nodes), func() string {
			have := w.get("instances", name).Spec.Nodes
			if slices.Sort(have); !slices.Equal(have, nodes) {
				return fmt.Sprint(have)
			}
			return ""
		})
	}
	w.unplug(node2, true)
	sees(node1)
	w.unplug(node2, false)
	sees(node1, node2)
}

// nextToOurs plays Akri's agent on node2 next to our agent on node1.
func (w *world) nextToOurs() {
	w.Helper()
	w.agentsExcept(node2)
	w.eventually("our agent of node2 stops", func() string {
		if running := w.kubectl("--namespace", akri.Namespace, "get", "pods", "--output=name",
			"--selector=app.kubernetes.io/name=akri-agent"); strings.Count(running, "akri-agent") != 1 {
			return running
		}
		return ""
	})
	w.becomeAkri()
	for _, instance := range w.list("instances") {
		w.accepted("repeat what it published", w.join(instance, node2))
	}
	for _, configuration := range w.list("configurations") {
		w.accepted("add its finalizer", w.finalize(node2, "configurations", configuration.Metadata.Name))
	}
	w.claimAndFree()
}

// claimAndFree plays an agent of Akri on node2 that claims the free slot of a device that
// another node uses, and frees it.
func (w *world) claimAndFree() {
	w.Helper()
	held := w.owners()
	name, free := w.freeSlot()
	w.accepted("claim a free slot", w.own(name, node2, map[string]string{free: ofGroup}))
	want := maps.Clone(held)
	want[free] = ofGroup
	if got := w.owners(); !maps.Equal(got, want) {
		w.Errorf("with the slot that Akri's agent has claimed, the slots are\n%v\nwant\n%v", got, want)
	}
	w.accepted("free it", w.own(name, node2, map[string]string{}))
	if got := w.owners(); !maps.Equal(got, held) {
		w.Errorf("with the slot that Akri's agent has freed, the slots are\n%v\nwant\n%v", got, held)
	}
}

// wayBack plays Akri's agents on both nodes after ours have stopped.
func (w *world) wayBack() {
	w.Helper()
	before, held := w.identities(), w.owners()
	w.stop(node1, node2)
	for _, instance := range w.list("instances") {
		for _, node := range []string{node1, node2} {
			w.accepted("take over "+instance.Metadata.Name+" on "+node, w.join(instance, node))
			w.keepSlots(instance, node)
		}
	}
	w.addManager("job", "akri-agent")
	w.documented(1)
	for _, instance := range w.list("instances") {
		if instance.countManager("akri-agent") > 0 {
			w.Errorf("%s still belongs to our agents: %+v", instance.Metadata.Name, instance.Metadata.ManagedFields)
		}
	}
	if after := w.owners(); !maps.Equal(after, held) {
		w.Errorf("before the way back, the slots were\n%v\nand now\n%v", held, after)
	}
	w.claimAndFree()
	job := w.instance("job")
	w.accepted("leave", w.leave(job, node2))
	if have := w.get("instances", job.Metadata.Name).Spec.Nodes; !slices.Equal(have, []string{node1}) {
		w.Errorf("after Akri's agent on node2 has left %s, its nodes are %v", job.Metadata.Name, have)
	}
	if after := w.identities(); !maps.Equal(after, before) {
		w.Errorf("before the way back, there were\n%v\nand now\n%v", before, after)
	}
}

// addManager adds an entry of a field manager, which has one already, to the Instance of a
// Configuration: for another operation, and without a change of the object.
func (w *world) addManager(configuration, manager string) {
	w.Helper()
	const label = "akri.sh/configuration"
	name := w.instance(configuration).Metadata.Name
	body := map[string]any{"metadata": map[string]any{"labels": map[string]string{label: w.get("instances", name).Metadata.Labels[label]}}}
	if err := w.applyAs(manager, "instances", name, body); err != nil {
		w.Fatal(err)
	}
	if instance := w.get("instances", name); instance.countManager(manager) < 2 {
		w.Fatalf("%s has one entry of %s: %+v", name, manager, instance.Metadata.ManagedFields)
	}
}

// remove takes the devices away and deletes everything, which Akri's finalizers and what
// its agents have written must not prevent.
func (w *world) remove() {
	w.Helper()
	w.start()
	unused := w.instance("job").Metadata.Name
	w.offered("job") // agents that start wait for devices that no list has had yet
	w.unplug(node1, true)
	w.unplug(node2, true)
	w.eventually("the Instance of a device that has left all nodes is gone", func() string {
		for _, instance := range w.list("instances") {
			if instance.Metadata.Name == unused {
				return fmt.Sprintf("it is on %v", instance.Spec.Nodes)
			}
		}
		return ""
	})
	w.kubectl("delete", "pod", "user")
	w.kubectl("delete", "configurations", "--all", "--wait=false")
	took := w.eventually("everything is gone", func() string {
		for _, kind := range []string{"configurations", "instances", "pods", "jobs"} {
			if left := w.list(kind); len(left) > 0 {
				return fmt.Sprintf("%d %s, first %s with finalizers %v", len(left), kind, left[0].Metadata.Name, left[0].Metadata.Finalizers)
			}
		}
		return ""
	})
	w.Logf("everything was gone after %v", took.Round(time.Millisecond))
}
