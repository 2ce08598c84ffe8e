package streams

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/discovery/protocol"
)

func TestBytesOf(t *testing.T) {
	for name, test := range map[string]struct {
		device Device
		want   int
	}{
		"an ID":             {Device{Key: Key{ID: "cam"}}, deviceBytes + 3},
		"an empty property": {Device{Properties: map[string]string{"A": ""}}, deviceBytes + entryBytes + 1},
		"a mount and a file": {
			Device{Mounts: []device.Mount{{HostPath: "/a", ContainerPath: "/b"}}, Files: []device.File{{HostPath: "/dev/c"}}},
			deviceBytes + 2*entryBytes + 10,
		},
	} {
		if got := bytesOf([]Device{test.device, test.device}); got != 2*test.want {
			t.Errorf("%s: two take %d bytes, want %d", name, got, 2*test.want)
		}
	}
}

func TestAdmit(t *testing.T) {
	const mib = 1 << 20
	known := func(sizes map[string]int) map[types.NamespacedName]*discovery {
		all := map[types.NamespacedName]*discovery{}
		for name, bytes := range sizes {
			namespace, name, _ := strings.Cut(name, "/")
			all[types.NamespacedName{Namespace: namespace, Name: name}] = &discovery{view: &view{sources: map[registry.Endpoint]*source{
				usb: {bytes: bytes}}}}
		}
		return all
	}
	for name, test := range map[string]struct {
		known map[string]int // by NAMESPACE/NAME
		bytes int
		says  string
	}{
		"as much as a namespace may have": {bytes: 8 * mib},
		"one byte more":                   {bytes: 8*mib + 1, says: "namespace plant would have 8388609 bytes, the limit is 8388608"},
		"another Configuration":           {known: map[string]int{"plant/cam": 5 * mib}, bytes: 4 * mib, says: "namespace plant"},
		"the former list is replaced":     {known: map[string]int{"plant/door": 5 * mib}, bytes: 4 * mib},
		"another namespace":               {known: map[string]int{"office/cam": 8 * mib}, bytes: 8 * mib},
		"too many namespaces": {
			known: map[string]int{"office/cam": 8 * mib, "lab/cam": mib}, bytes: 8 * mib, says: "for all Configurations",
		},
	} {
		err := (&Supervisor{discoveries: known(test.known)}).admit(door, usb, test.bytes)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
}

// A list for which there is no room does not replace the one before, and a later one does.
func TestListsThatDoNotFit(t *testing.T) {
	s := newSetup(t)
	f := s.handler("first")
	defer f.serve(t)()
	s.ask("one")
	s.register(f)
	s.ask("one")
	s.wantRequest(f, "one")
	f.send <- devices("a", "b")
	s.await("one", "a b settled")
	large := &protocol.DiscoverResponse{}
	for i := range 9900 {
		large.Devices = append(large.Devices, &protocol.Device{Id: fmt.Sprintf("%0400d", i)})
	}
	f.send <- large
	s.wantRequest(f, "one") // the agent has ended the stream, and tries again
	snapshot := s.supervisor.Snapshot(door)
	if len(snapshot.Failures) != 1 || !strings.Contains(snapshot.Failures[0].Message, "the last list that fitted is kept") ||
		len(snapshot.Devices) != 2 || !snapshot.Settled {
		t.Errorf("the snapshot has %d devices, settled: %v, and the failures %+v",
			len(snapshot.Devices), snapshot.Settled, snapshot.Failures)
	}
	f.send <- devices("c")
	s.await("one", "c settled")
}
