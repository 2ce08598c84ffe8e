package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

const (
	maxKillBatch      = 15 // Instances created at once
	maxKillTotal      = 60 // Instances in total
	groupObject       = "group"
	editedSuffix      = "-b"
	killConfiguration = "kill"
)

// killModel tracks the desired state, to compare with the objects in the API server.
type killModel struct {
	*world
	random  *rand.Rand
	devices []string // names of the Instances
	next    int      // number of the next device
	suffix  string   // of the ConfigMaps' names; an edit changes it
	value   string   // of the ConfigMaps' channel; an edit changes it
}

// configure applies the model's Configuration.
func (m *killModel) configure() {
	m.t.Helper()
	m.apply(fmt.Sprintf(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: %s}
spec:
  discoveryHandler: {name: none}
  instanceBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}%s"}
    data: {device: "{{INSTANCE_PROPERTIES.DEVICE}}", channel: %[3]q}
  - apiVersion: v1
    kind: Service
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec: {selector: {device: "{{INSTANCE_NAME}}"}, ports: [{name: http, port: 80, targetPort: 8080}]}
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec:
      replicas: 0
      selector: {matchLabels: {device: "{{INSTANCE_NAME}}"}}
      template:
        metadata: {labels: {device: "{{INSTANCE_NAME}}"}}
        spec:
          containers:
          - {name: broker, image: "example/broker:v1", env: [{name: DEVICE, value: "{{INSTANCE_PROPERTIES.DEVICE}}"}]}
  configurationBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: %s}
    data: {channel: %[3]q}
`, killConfiguration, m.suffix, m.value, groupObject))
}

// create creates Instances, as an agent would.
func (m *killModel) create(count int) {
	m.t.Helper()
	var manifests strings.Builder
	for range count {
		name := fmt.Sprintf("%s-%06d", killConfiguration, m.next)
		m.next++
		m.devices = append(m.devices, name)
		fmt.Fprintf(&manifests, `
---
apiVersion: akri.sh/v0
kind: Instance
metadata: {name: %[1]s}
spec:
  configurationName: %[2]s
  cdiName: akri.sh/%[2]s=%[1]s
  capacity: 1
  nodes: [node1]
  brokerProperties: {DEVICE: /dev/%[1]s}
`, name, killConfiguration)
	}
	m.apply(manifests.String())
}

// act performs a random action that the controller must react to, and returns its
// description.
func (m *killModel) act() string {
	m.t.Helper()
	switch choice := m.random.IntN(3); {
	case len(m.devices) == 0, choice == 0 && len(m.devices) < maxKillTotal:
		count := 1 + m.random.IntN(maxKillBatch)
		m.create(count)
		return fmt.Sprintf("%d Instances created", count)
	case choice == 1:
		return m.edit()
	}
	return m.delete()
}

// edit changes the value in all ConfigMaps and, every other time, their names.
func (m *killModel) edit() string {
	m.t.Helper()
	m.value += "1"
	action := "templates edited"
	if m.random.IntN(2) == 0 {
		action = "templates edited with new names"
		if m.suffix == "" {
			m.suffix = editedSuffix
		} else {
			m.suffix = ""
		}
	}
	m.configure()
	return action
}

// delete deletes some Instances, and sometimes all of them.
func (m *killModel) delete() string {
	m.t.Helper()
	count := 1 + m.random.IntN(len(m.devices))
	if m.random.IntN(4) == 0 {
		count = len(m.devices)
	}
	m.random.Shuffle(len(m.devices), func(i, j int) { m.devices[i], m.devices[j] = m.devices[j], m.devices[i] })
	m.kubectl(append([]string{"delete", "--wait=false", "instances"}, m.devices[:count]...)...)
	m.devices = slices.Clone(m.devices[count:])
	return fmt.Sprintf("%d Instances deleted, %d left", count, len(m.devices))
}

// awaitConverged waits until the objects match the desired state. It returns the
// differences if that takes longer than maxRecovery.
func (m *killModel) awaitConverged() (complaint string) {
	m.t.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if complaint = m.check(); complaint == "" || time.Since(began) > maxRecovery {
			return complaint
		}
	}
}

// check compares the objects with the desired state: names, owners and values.
// It returns "" if they agree.
func (m *killModel) check() string {
	m.t.Helper()
	owners, children := map[string]string{}, map[string][]object{} // UID by Instance, objects by kind
	for _, o := range m.listAll("instances,configmaps,services,deployments") {
		switch {
		case o.Kind == "Instance":
			owners[o.Metadata.Name] = o.Metadata.UID
		case o.Metadata.Labels["app.kubernetes.io/managed-by"] == "akri":
			children[o.Kind] = append(children[o.Kind], o)
		}
	}
	var complaints []string
	for _, name := range m.devices {
		if owners[name] == "" {
			m.t.Fatalf("Instance %s was deleted, but not by the test", name)
		}
	}
	if len(owners) != len(m.devices) {
		complaints = append(complaints, fmt.Sprintf("%d Instances, want %d", len(owners), len(m.devices)))
	}
	for _, kind := range []string{"ConfigMap", "Service", "Deployment"} {
		complaints = append(complaints, m.checkKind(kind, children[kind], owners)...)
	}
	return joinFirst(complaints)
}

// checkKind compares the objects of one kind with the desired state. owners has
// the Instances' UIDs.
func (m *killModel) checkKind(kind string, objects []object, owners map[string]string) (complaints []string) {
	complain := func(format string, arguments ...any) {
		complaints = append(complaints, fmt.Sprintf(format, arguments...))
	}
	suffix, groupMissing := "", false
	if kind == "ConfigMap" {
		suffix, groupMissing = m.suffix, len(m.devices) > 0
	}
	missing := map[string]string{} // Instance by the name of its object
	for _, device := range m.devices {
		missing[device+suffix] = device
	}
	for _, o := range objects {
		name := o.Metadata.Name
		stale := kind == "ConfigMap" && o.Data["channel"] != m.value
		if name == groupObject && groupMissing {
			groupMissing = false
			if stale {
				complain("the group's ConfigMap is stale")
			}
			continue
		}
		device, ok := missing[name]
		if !ok {
			complain("orphan or duplicate: %s %s", kind, name)
			continue
		}
		delete(missing, name)
		if o.controllerUID() != owners[device] {
			complain("%s %s is not owned by its Instance", kind, name)
		}
		if stale {
			complain("%s %s is stale", kind, name)
		}
	}
	if groupMissing {
		complain("missing: the group's ConfigMap")
	}
	for name := range missing {
		complain("missing: %s %s", kind, name)
	}
	return complaints
}

// joinFirst joins the first few complaints, and counts the others.
func joinFirst(complaints []string) string {
	const maxShown = 5
	slices.Sort(complaints)
	if len(complaints) > maxShown {
		complaints = append(complaints[:maxShown:maxShown], fmt.Sprintf("and %d more", len(complaints)-maxShown))
	}
	return strings.Join(complaints, "; ")
}
