package view

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/agent/debug"
)

// reports returns the reports of three nodes: one with problems, one without, and one
// that cannot be read.
func reports(now time.Time) []NodeReport {
	before := func(ago time.Duration) *time.Time {
		at := now.Add(-ago)
		return &at
	}
	var slots debug.Slots
	for number, slot := range []debug.Slot{
		{State: "free"},
		{State: "held", Owner: "node1", InUse: true, Healthy: true},
		{State: "held", Owner: "C:0:node1", Pending: "releasing"},
		{State: "taken", Owner: "C:1:node2"},
		{State: "conflicting", Owner: "node2", InUse: true},
		{State: "unwritable", Owner: "node1", InUse: true},
	} {
		slot.Name = fmt.Sprintf("cam-1-%d", number)
		slots.Add(slot)
	}
	slots.Resources = []debug.Resource{{Name: "akri.sh/cam", Offered: 1, IDs: []debug.ID{
		{ID: "0", Slots: []string{"cam-1-2"}}, {ID: "1", Healthy: true},
	}}}
	slots.Violations = []debug.Violation{{Invariant: "I2", Where: "cam-1-1", What: "free although a container may have it"}}
	return []NodeReport{
		{Node: "node1", Namespace: "akri-system", Pod: "akri-agent-a", State: &debug.State{
			Node: "node1", Version: "v1.2.3", Started: *before(3 * time.Hour), Time: now, NotReady: "not synced",
			Handlers: []debug.Handler{
				{Name: "onvif", Endpoint: "10.0.0.1:80", Shared: true, State: "Active", Streams: 1},
				{Name: "onvif", Endpoint: "10.0.0.2:80", Shared: true, State: "Active", Streams: 2},
				{Name: "udev", Endpoint: "/u.sock", State: "Offline", OfflineSince: before(2 * time.Minute)},
			},
			Configurations: []debug.Configuration{
				{Namespace: "plant", Name: "cam", Handler: "onvif", Devices: 3, Online: 2, Instances: 1},
				{Namespace: "plant", Name: "usb", Handler: "udev", Failures: []string{"/u.sock: no\x1b[2J\nrule"}},
			},
			Slots: slots,
			Errors: []debug.Record{
				{Level: "WARN", Message: "Could not write the slots", Details: "err=timeout", Count: 7,
					First: *before(time.Hour), Last: *before(10 * time.Second)},
				{Level: "ERROR", Message: "Cannot register", First: *before(time.Hour), Last: *before(time.Hour), Count: 1},
			},
		}},
		{Node: "node2", Namespace: "akri-system", Pod: "akri-agent-b", State: &debug.State{
			Node: "node2", Version: "v1.2.3", Started: *before(5 * time.Minute), Time: now,
			Kubernetes: debug.Kubernetes{APIServer: "v1.33.1", Pods: debug.PodsOfAPIServer, Lacking: []string{"too\nold"}},
		}},
		{Node: "node3", Namespace: "akri-system", Pod: "akri-agent-c", Problem: "Pod akri-agent-c is Pending"},
	}
}

func TestNodes(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var out strings.Builder
	if err := Nodes(&out, reports(now), now); err != nil {
		t.Fatal(err)
	}
	const want = `NODE|AGENT|VERSION|HANDLERS|CONFIGURATIONS|DEVICES|SLOTS|ERRORS
node1|not ready|v1.2.3|onvif Active (2), udev Offline for 2m|2|3|1 free, 2 held, 1 taken, 1 conflicting, 1 unwritable|2, latest 10s ago
node2|ready|v1.2.3|none|0|0|none|none
node3|unknown|-|-|-|-|-|-

node1: the agent is not ready: not synced
node1: discovery of plant/usb fails: /u.sock: no\x1b[2J rule
node1: slot cam-1-4 is in use here, but its Instance names "node2"
node1: owners of 1 slot cannot be written into the Instances, such as cam-1-5; the latest errors say why
node1: invariant I2 is violated: cam-1-1: free although a container may have it; please report this
node3: Pod akri-agent-c is Pending
`
	got := regexp.MustCompile("  +").ReplaceAllString(out.String(), "|")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestNode(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	all := reports(now)
	wants := []string{`Node node1  agent not ready
  pod      akri-system/akri-agent-a, started 3h ago
  version  v1.2.3
  slots    1 free, 2 held, 1 taken, 1 conflicting, 1 unwritable

Needs attention:
  the agent is not ready: not synced
  discovery of plant/usb fails: /u.sock: no\x1b[2J rule
  slot cam-1-4 is in use here, but its Instance names "node2"
  owners of 1 slot cannot be written into the Instances, such as cam-1-5; the latest errors say why
  invariant I2 is violated: cam-1-1: free although a container may have it; please report this

Handlers:
  onvif  Active, 1 stream, shared devices  10.0.0.1:80
  onvif  Active, 2 streams, shared devices  10.0.0.2:80
  udev  Offline for 2m, 0 streams  /u.sock

Configurations:
  plant/cam  handler onvif  3 devices (1 offline), 1 Instance
  plant/usb  handler udev  0 devices, 0 Instances

Resources of Configurations:
  akri.sh/cam  1 in use, 1 more can be allocated

Slots that are not free:
  cam-1-1  held by a container
  cam-1-2  held, through the Configuration's resource (id 0), releasing
  cam-1-3  taken by node2, through the Configuration's resource (id 1)
  cam-1-4  conflicting with node2
  cam-1-5  unwritable

Latest errors:
  10s ago  Could not write the slots (7 times in 59m)  err=timeout
  60m ago  Cannot register
`, `Node node2  agent ready
  pod      akri-system/akri-agent-b, started 5m ago
  version  v1.2.3
  cluster  Kubernetes v1.33.1; the kubelet has no Pods API: Pods are read from the API server; too old
  slots    none
`, `Node node3  agent unknown: Pod akri-agent-c is Pending
`}
	for i, want := range wants {
		var out strings.Builder
		if err := Node(&out, all[i], now); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}
