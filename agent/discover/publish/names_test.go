package publish

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
)

// stick is a device that only its own node can use.
var stick = streams.Device{Key: streams.Key{ID: "/dev/video0"}, Properties: map[string]string{"NAME": "stick"}}

// invent creates an Instance as the agent of a compromised node does.
func (b *bench) invent(name string, changes ...func(*v0.Instance)) {
	b.t.Helper()
	invented := intent(b.configuration, stick, "node-b", name)
	invented.Spec.BrokerProperties = map[string]string{"LD_PRELOAD": "/evil.so"}
	for _, change := range changes {
		change(invented)
	}
	if _, err := b.cold("node-b").create(b.t.Context(), invented); err != nil {
		b.t.Fatal(err)
	}
}

// delete deletes an Instance as an operator does.
func (b *bench) delete(name string) {
	b.t.Helper()
	client := b.client.Resource(v0.InstanceResource).Namespace(b.configuration.Namespace)
	if err := client.Delete(b.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// Each node has an Instance of its own for a local device. One with the same name is of
// another node whose digest is the same, or that invented it.
func TestLocalDeviceOfAnotherNode(t *testing.T) {
	short, long := v0.InstanceName("door", stick.ID, "node-a", false), v0.LongInstanceName("door", stick.ID, "node-a", false)
	for name, change := range map[string]func(*v0.Instance){
		"another node is listed":         func(*v0.Instance) {},
		"without a device ID":            func(i *v0.Instance) { i.Annotations = nil },
		"nobody is listed":               func(i *v0.Instance) { i.Spec.Nodes = nil },
		"it looks like a shared device":  func(i *v0.Instance) { i.Spec.Shared = true },
		"it claims to be another device": func(i *v0.Instance) { i.Annotations[v0.AnnotationDeviceID] = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.invent(short, change)
			p := b.publisher("node-a")
			for range 2 { // the Instance is found again
				result := b.publish(p, stick)
				if len(result.Devices) != 1 || result.Devices[0].Instance.Name != long || result.Devices[0].Properties["LD_PRELOAD"] != "" {
					t.Errorf("offers %+v, want %s with its own properties", result.Devices, long)
				}
			}
			if now := b.get(short); slices.Contains(now.Spec.Nodes, "node-a") {
				t.Errorf("node-a joined the Instance of another node: %+v", now.Spec)
			}
		})
	}
}

// The device is not published, and the failure names the Instance that somebody has to
// delete. Then it is.
func TestBothNamesAreTaken(t *testing.T) {
	b := newBench(t)
	long := v0.LongInstanceName("door", stick.ID, "node-a", false)
	b.invent(v0.InstanceName("door", stick.ID, "node-a", false))
	b.invent(long)
	p := b.publisher("node-a")
	result := b.publish(p, stick, camera)
	if len(result.Devices) != 1 || result.Devices[0].ID != camera.ID {
		t.Errorf("offers %+v, want the camera only", result.Devices)
	}
	if len(result.Refused) != 1 || !strings.Contains(result.Refused[0], long) || !strings.Contains(result.Refused[0], "node-b") ||
		!strings.Contains(result.Refused[0], "delete it") || result.Next.IsZero() {
		t.Errorf("refused %q, again at %s; want the Instance, its node, a remedy and another attempt", result.Refused, result.Next)
	}
	b.delete(long)
	b.eventually("the device is published", func() bool {
		result = b.publish(p, stick, camera)
		return len(result.Devices) == 2 && len(result.Refused) == 0
	})
}

// What an Instance says is for the nodes that it lists. Another node does not offer the
// device, and looks again: no event tells it that the Instance has gone.
func TestInstanceThatThisNodeCannotJoin(t *testing.T) {
	b := newBench(t)
	name := v0.InstanceName("door", camera.ID, "", true)
	b.invent(name, func(i *v0.Instance) {
		i.Spec.Shared, i.Annotations[v0.AnnotationDeviceID] = true, camera.ID
		i.OwnerReferences[0].UID = types.UID("of-a-former-configuration")
	})
	p := b.publisher("node-a")
	result := b.publish(p, camera)
	if len(result.Devices) != 0 || result.Next.IsZero() {
		t.Errorf("offers %+v, again at %s; want nothing, and another attempt", result.Devices, result.Next)
	}
	b.delete(name)
	b.eventually("the device is published", func() bool { return len(b.publish(p, camera).Devices) == 1 })
}
