package deviceplugin

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
	"akri.sh/akri/internal/kubelettest"
)

// TestUnlistedIsReported checks that calls for IDs that were never listed are reported once for
// each resource, with a bounded text, and that answers to Allocate are counted.
func TestUnlistedIsReported(t *testing.T) {
	const instance, configuration = "cam-1a2b3c", "cam"
	k, log := kubelettest.Start(t, kubelettest.Options{}), &records{}
	s, _ := unconnected(t, k, slog.New(slog.NewTextHandler(log, nil)))
	s.Publish(types.NamespacedName{Namespace: "default", Name: configuration}, []device.Device{{
		Instance: types.NamespacedName{Namespace: "default", Name: instance}, Configuration: configuration, Capacity: 1, Online: true,
	}})
	for resource, object := range map[string]string{instance: "kind=Instance", configuration: "kind=Configuration"} {
		k.Await("akri.sh/"+resource, healthy(1))
		served, err := ask(t.Context(), s, func() *service { return s.resources[resource].service })
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"cam-1a2b3c-7", "7", "nonsense", "", strings.Repeat("long", 1<<20)} {
			_, err := served.Allocate(t.Context(), &plugin.AllocateRequest{
				ContainerRequests: []*plugin.ContainerAllocateRequest{{DevicesIds: []string{id}}},
			})
			_, preferenceErr := served.GetPreferredAllocation(t.Context(), &plugin.PreferredAllocationRequest{
				ContainerRequests: []*plugin.ContainerPreferredAllocationRequest{{MustIncludeDeviceIDs: []string{id}, AllocationSize: 1}},
			})
			if err == nil || preferenceErr == nil {
				t.Errorf("calls for %.20q: %v, %v", id, err, preferenceErr)
			}
		}
		reported := 0
		for line := range strings.Lines(log.text()) {
			if strings.Contains(line, object) && strings.Contains(line, "reason="+reasonRefused) {
				reported++
			}
			if len(line) > 1000 {
				t.Errorf("a line of %d bytes: %.200s", len(line), line)
			}
		}
		if reported != 1 {
			t.Errorf("%s: reported %d times, want once\n%s", resource, reported, log.text())
		}
	}
	if got, want := samples(t, s.options.Metrics.(*prometheus.Registry), "akri_agent_allocations"),
		[]string{"akri_agent_allocations_total [unlisted] 10"}; !slices.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// TestHeldByInitContainerIsReportedOnce checks that an observation which does not show what
// init containers have, because the kubelet's list alone decides, does not lead to a second
// Event about them.
func TestHeldByInitContainerIsReportedOnce(t *testing.T) {
	k, config := kubelettest.Start(t, kubelettest.Options{}), apitest.Start(t)
	if err := k.Join(config, "node-a"); err != nil {
		t.Fatal(err)
	}
	s, _ := run(t, k, config, slog.New(slog.DiscardHandler))
	s.Publish(types.NamespacedName{Namespace: "default", Name: "cam"}, []device.Device{{
		Instance: types.NamespacedName{Namespace: "default", Name: "cam-1a2b3c"}, Configuration: "cam", Capacity: 1, Online: true,
	}})
	k.Await(camResource, healthy(1))
	pod := kubelettest.Pod("p", camResource, 1)
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	pod.Spec.InitContainers = []corev1.Container{kubelettest.Container("init", camResource, 1)}
	if err := k.Admit(pod); err != nil {
		t.Fatal(err)
	}
	reported := func() bool {
		s.observeOnce(t.Context(), time.Now())
		hidden, err := ask(t.Context(), s, func() int { return len(s.hidden) })
		if err != nil {
			t.Fatal(err)
		}
		return hidden == 1
	}
	for start := time.Now(); !reported(); time.Sleep(time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatal("the slot of the init container was not noticed")
		}
	}
	k.AnswerList(&podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{
		{Namespace: "default", Name: "p"}, {Namespace: "default", Name: "q", Containers: []*podresources.ContainerResources{{
			Name: "app", Devices: []*podresources.ContainerDevices{{ResourceName: camResource, DeviceIds: []string{"cam-1a2b3c-0"}}},
		}}},
	}})
	if !reported() {
		t.Error("what was reported is forgotten when the list alone decides")
	}
}

// TestConfigurationOfEvents checks that Events of a Configuration have its UID if any of
// its Instances is known to the API server. Otherwise, a repeated Event would be another one. A
// refused call for a group leads to such an Event, even if an Instance has the same name.
func TestConfigurationOfEvents(t *testing.T) {
	log := &records{}
	s, _ := unconnected(t, kubelettest.Start(t, kubelettest.Options{}), slog.New(slog.NewTextHandler(log, nil)))
	recorded := &v0.Instance{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "cam-0", UID: "of-instance", ResourceVersion: "1", Labels: map[string]string{v0.NodeLabel("node-a"): ""},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Configuration", Name: "cam", UID: "of-configuration", Controller: new(true)}},
	}}
	s.options.Instances.Keep(recorded)
	var uids []types.UID
	if _, err := ask(t.Context(), s, func() bool {
		for i := range 20 {
			name := types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("cam-%d", i)}
			s.devices.known[name.Name] = &knownInstance{name: name, configuration: "cam"}
		}
		for range 20 {
			object, _ := s.configuration("cam")
			uids = append(uids, object.UID)
		}
		s.devices.known["cam"] = &knownInstance{name: types.NamespacedName{Namespace: "default", Name: "cam"}, configuration: "other"}
		for _, group := range []string{"cam", "gone"} {
			s.warnOfRefusal(slots.Resource{Name: group, Group: true}, []int{0}, slots.ErrTooFew)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if uids = slices.Compact(uids); !slices.Equal(uids, []types.UID{"of-configuration"}) {
		t.Errorf("UIDs %q", uids)
	}
	refusals := log.text()
	if strings.Count(refusals, "reason="+reasonRefused) != 1 || !strings.Contains(refusals, "kind=Configuration namespace=default name=cam") {
		t.Errorf("logged:\n%s", refusals)
	}
}
