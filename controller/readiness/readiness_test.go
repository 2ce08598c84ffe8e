package readiness_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"akri.sh/akri/controller/readiness"
	"akri.sh/akri/templating/readywhen"
)

func TestOf(t *testing.T) {
	for name, test := range map[string]struct {
		object string
		ready  bool
		reason string // a part of it
		ended  bool
	}{
		"a kind without a status": {
			object: `{apiVersion: v1, kind: ConfigMap}`,
			ready:  true,
		},
		"a Pod without a status": {
			object: `{apiVersion: v1, kind: Pod}`,
			reason: "not available",
		},
		"a running Pod": {
			object: `{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`,
			ready:  true,
		},
		"a Pod without a node": {
			object: `{apiVersion: v1, kind: Pod, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", ` +
				`reason: Unschedulable, message: "0/1 nodes are available: 1 Insufficient akri.sh/cam-1."}]}}`,
			reason: "the Pod is pending: Unschedulable: 0/1 nodes are available: 1 Insufficient akri.sh/cam-1.",
		},
		"a Pod that its author holds back": {
			object: `{apiVersion: v1, kind: Pod, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", ` +
				`reason: SchedulingGated, message: Scheduling is blocked due to non-empty scheduling gates}]}}`,
			reason: "the Pod is pending: SchedulingGated: Scheduling is blocked",
		},
		"a Pod without its image": {
			object: `{apiVersion: v1, kind: Pod, status: {phase: Pending, conditions: [{type: PodScheduled, status: "True"}], ` +
				`containerStatuses: [{name: a, state: {waiting: {reason: ContainerCreating}}}, ` +
				`{name: b, state: {waiting: {reason: ImagePullBackOff, message: no such image}}}]}}`,
			reason: "the Pod is pending: ImagePullBackOff: no such image",
		},
		"a Pod whose image cannot be pulled": {
			object: `{apiVersion: v1, kind: Pod, status: {phase: Pending, ` +
				`containerStatuses: [{name: b, state: {waiting: {reason: ErrImagePull, message: no such image}}}]}}`,
			reason: "the Pod is pending: ErrImagePull: no such image",
		},
		"the same, until the next pull": { // each change of the text would be written to the status
			object: `{apiVersion: v1, kind: Pod, status: {phase: Pending, containerStatuses: [{name: b, state: {waiting: ` +
				`{reason: ImagePullBackOff, message: "Back-off pulling image \"a:1\": ErrImagePull: no such image"}}}]}}`,
			reason: "the Pod is pending: ErrImagePull: no such image",
		},
		"a Pod whose init container cannot start": {
			object: `{apiVersion: v1, kind: Pod, status: {phase: Pending, containerStatuses: [{name: a, state: {waiting: ` +
				`{reason: PodInitializing}}}], initContainerStatuses: [{name: i, state: {waiting: {reason: CreateContainerConfigError}}}]}}`,
			reason: "the Pod is pending: CreateContainerConfigError",
		},
		"a Pod that starts": {
			object: `{apiVersion: v1, kind: Pod, status: {phase: Pending, containerStatuses: [{name: a, state: {waiting: ` +
				`{reason: ContainerCreating}}}]}}`,
			reason: "in the Pending phase",
		},
		"a Pod that its node rejected": {
			object: `{apiVersion: v1, kind: Pod, status: {phase: Failed, reason: UnexpectedAdmissionError, message: no healthy devices}}`,
			reason: "has failed: UnexpectedAdmissionError: no healthy devices",
			ended:  true,
		},
		"a Pod that has failed without a reason": {
			object: `{apiVersion: v1, kind: Pod, status: {phase: Failed}}`,
			reason: "has failed",
			ended:  true,
		},
		"a Pod that has succeeded": {
			object: `{apiVersion: v1, kind: Pod, status: {phase: Succeeded}}`,
			ready:  true,
			ended:  true,
		},
		"a custom kind named Pod": {
			object: `{apiVersion: whales.example/v1, kind: Pod, status: {phase: Failed}}`,
			ready:  true,
		},
		"an object that is being deleted": {
			object: `{apiVersion: v1, kind: ConfigMap, metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}}`,
			reason: "being deleted",
		},
		"a custom resource that is not ready": {
			object: `{apiVersion: x.example/v1, kind: X, status: {conditions: [{type: Ready, status: "False", message: no water}]}}`,
			reason: "no water",
		},
		"a custom resource whose status is a text": {
			object: `{apiVersion: x.example/v1, kind: X, status: hush}`,
			reason: "its status cannot be interpreted",
		},
		"a custom resource whose conditions are texts": {
			object: `{apiVersion: x.example/v1, kind: X, status: {conditions: [hush]}}`,
			reason: "its status cannot be interpreted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var object unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(test.object), &object.Object); err != nil {
				t.Fatal(err)
			}
			isReady, reason := readiness.Check(&object)
			if isReady != test.ready || isReady != (reason == "") || !strings.Contains(reason, test.reason) {
				t.Errorf("ready %v, reason %q; want %v, %q", isReady, reason, test.ready, test.reason)
			}
			if strings.Contains(reason, "hush") {
				t.Errorf("the reason %q quotes a value", reason)
			}
			if ended := readiness.Terminated(&object); ended != test.ended {
				t.Errorf("ended %v, want %v", ended, test.ended)
			}
		})
	}
}

func TestBy(t *testing.T) {
	condition, err := readywhen.Compile(`self.data[self.data.k] == "a"`)
	if err != nil {
		t.Fatal(err)
	}
	for object, want := range map[string]string{
		`{data: {k: k}}`:       "the ready-when condition is not met",
		`{data: {k: a, a: a}}`: "",
		`{data: {k: hush}}`:    "ready-when: a field does not exist: self.data[self.data.k]",
		`{data: {k: a, a: a}, metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}}`: "being deleted",
	} {
		var content unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(object), &content.Object); err != nil {
			t.Fatal(err)
		}
		if reason := readiness.CheckBy(&content, condition); reason != want {
			t.Errorf("%s: the reason is %q, want %q", object, reason, want)
		}
	}
}
