package install

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// held is the namespace of the brokers that must not notice anything.
const held = "held"

// heldConfiguration has two devices that both nodes see. Each has a broker in a
// Deployment, which uses one of three slots, and a Service.
const heldConfiguration = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: held, namespace: held}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [h0, h1]"}
  capacity: 3
  instanceBrokerResources:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec:
      selector: {matchLabels: "{{LABEL_SELECTOR}}"}
      template:
        spec:
          containers:
          - {name: c, image: "akri.local/workload:1", resources: {limits: {"{{RESOURCE_NAME}}": "1"}}}
  - apiVersion: v1
    kind: Service
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec: {ports: [{port: 80, targetPort: 6052}], selector: "{{LABEL_SELECTOR}}"}
  configurationBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: devices}
    data: {names: "{{ range INSTANCES }}{{ .name }} {{ end }}"}
`

// brokers is the state of everything in the namespace held that must stay as it is.
type brokers struct {
	objects string
	// slots maps Instances to the slots that brokers use, and those to their owners.
	slots map[string]map[string]string
}

// createBrokers creates the brokers, and returns their state once they run.
func (w *world) createBrokers() brokers {
	w.t.Helper()
	w.kubectl("create", "namespace", held)
	w.apply(heldConfiguration)
	w.awaitReady(held, "held", 2)
	b := brokers{objects: w.describeBrokers(), slots: map[string]map[string]string{}}
	for _, instance := range w.list(held, "instances") {
		used := map[string]string{}
		for slot, owner := range instance.Spec.DeviceUsage {
			if owner != "" {
				used[slot] = owner
			}
		}
		if len(used) != 1 {
			w.t.Fatalf("%d slots of %s are in use, want the one of its broker: %v", len(used), instance.Metadata.Name, used)
		}
		b.slots[instance.Metadata.Name] = used
	}
	return b
}

// describeBrokers describes the objects in the namespace held. An object that is written
// has another description, except for Pods and Instances, which kubelets and agents write. Of
// these it has what identifies them, and their containers.
func (w *world) describeBrokers() string {
	w.t.Helper()
	var lines []string
	for _, item := range w.list(held, "configurations,instances,deployments,replicasets,services,configmaps,pods") {
		line := fmt.Sprintf("%s %s %s", item.Kind, item.Metadata.Name, item.Metadata.UID)
		switch item.Kind {
		case "Deployment", "ReplicaSet", "Service", "ConfigMap":
			line += " version " + item.Metadata.ResourceVersion
		case "Configuration":
			line += fmt.Sprint(" generation ", item.Metadata.Generation)
		}
		for _, container := range item.Status.ContainerStatuses {
			line += fmt.Sprint(" ", container.ContainerID, " restarts ", container.RestartCount, " ready ", container.Ready)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// assertUntouched fails the test if brokers have changed.
func (w *world) assertUntouched(b brokers) {
	w.t.Helper()
	if now := w.describeBrokers(); now != b.objects {
		w.t.Errorf("an object of the brokers has changed\nbefore\n%s\nafter\n%s", b.objects, now)
	}
	for _, instance := range w.list(held, "instances") {
		if lost := lostSlots(b, instance); lost != "" {
			w.t.Error(lost)
		}
	}
}

// lostSlots returns "" if the brokers of an Instance have their slots.
func lostSlots(b brokers, instance object) string {
	for slot, owner := range b.slots[instance.Metadata.Name] {
		if now := instance.Spec.DeviceUsage[slot]; now != owner {
			return fmt.Sprintf("the slot %s of a running broker belonged to %q, and now to %q", slot, owner, now)
		}
	}
	return ""
}

// slotWatch watches the Instances of the brokers, so that no moment is missed.
type slotWatch struct {
	stop  context.CancelFunc
	ended chan struct{}

	mu       sync.Mutex
	versions int // of Instances that were seen
	lost     []string
	err      error
}

// watchSlots watches until stop is called.
func (w *world) watchSlots(b brokers) *slotWatch {
	ctx, cancel := context.WithCancel(w.t.Context())
	s := &slotWatch{stop: cancel, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		err := s.follow(ctx, w.client, w.server, b)
		s.mu.Lock()
		defer s.mu.Unlock()
		if ctx.Err() == nil {
			s.err = err
		}
	}()
	return s
}

// follow reads the events of the watch.
func (s *slotWatch) follow(ctx context.Context, client *http.Client, server string, b brokers) error {
	url := server + "/apis/akri.sh/v0/namespaces/" + held + "/instances?watch=1&timeoutSeconds=3600"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	decoder := json.NewDecoder(bufio.NewReader(response.Body))
	for {
		var event struct {
			Type   string
			Object object
		}
		if err := decoder.Decode(&event); err != nil {
			return fmt.Errorf("watch the Instances: %w", err)
		}
		lost := lostSlots(b, event.Object)
		if event.Type == "DELETED" || event.Type == "ERROR" {
			lost = event.Type + " " + event.Object.Metadata.Name
		}
		s.mu.Lock()
		s.versions++
		if lost != "" {
			s.lost = append(s.lost, lost)
		}
		s.mu.Unlock()
	}
}

// assert stops the watch, and fails the test if a slot was lost at any moment.
func (s *slotWatch) assert(t *testing.T) {
	t.Helper()
	s.stop()
	<-s.ended
	if s.err != nil {
		t.Error(s.err)
	}
	for _, lost := range s.lost[:min(len(s.lost), 10)] {
		t.Error(lost)
	}
	t.Logf("%d versions of the Instances were seen; in %d of them, a broker had lost its slot", s.versions, len(s.lost))
}

// awaitRolled waits until all containers of a component have other IDs than before.
func (w *world) awaitRolled(c string, before map[string]bool) {
	w.t.Helper()
	w.eventually("new Pods of "+c, func() string {
		now := w.containers(c)
		for id := range now {
			if before[id] {
				return "an old container still runs: " + id
			}
		}
		if len(now) == 0 {
			return "there are none"
		}
		return ""
	})
}

// containers returns the IDs of the running containers of a component.
func (w *world) containers(c string) map[string]bool {
	w.t.Helper()
	ids := map[string]bool{}
	for id := range strings.FieldsSeq(w.kubectl("--namespace", w.release.Namespace, "get", "pods",
		"--selector=app.kubernetes.io/name="+c, "--output=jsonpath={.items[*].status.containerStatuses[*].containerID}")) {
		ids[id] = true
	}
	return ids
}

// difference returns the sorted keys of a that are not in b.
func difference(a, b map[string]bool) []string {
	only := maps.Clone(a)
	maps.DeleteFunc(only, func(key string, _ bool) bool { return b[key] })
	return slices.Sorted(maps.Keys(only))
}
