package kubelettest_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"akri.sh/akri/internal/kubelettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const resource = "akri.sh/cam"

// naive is a plugin that removes an id from its list when a call names it.
type naive struct {
	plugin.UnimplementedDevicePluginServer
	registration.UnimplementedRegistrationServer
	k        *kubelettest.Kubelet
	drops    bool
	lists    chan []string
	statuses chan *registration.RegistrationStatus // if not nil, the test receives them
}

func (n *naive) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.DevicePlugin, Name: resource, SupportedVersions: []string{plugin.Version},
	}, nil
}

// NotifyRegistrationStatus fails if the test receives the statuses, so that the kubelet
// registers the socket again.
func (n *naive) NotifyRegistrationStatus(
	ctx context.Context, outcome *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	if n.statuses == nil {
		return &registration.RegistrationStatusResponse{}, nil
	}
	select {
	case n.statuses <- outcome:
		return nil, errors.New("again")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *naive) GetDevicePluginOptions(context.Context, *plugin.Empty) (*plugin.DevicePluginOptions, error) {
	return &plugin.DevicePluginOptions{}, nil
}

func (n *naive) ListAndWatch(_ *plugin.Empty, stream plugin.DevicePlugin_ListAndWatchServer) error {
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case ids := <-n.lists:
			list := &plugin.ListAndWatchResponse{}
			for _, id := range ids {
				list.Devices = append(list.Devices, &plugin.Device{ID: id, Health: plugin.Healthy})
			}
			if err := stream.Send(list); err != nil {
				return err
			}
		}
	}
}

func (n *naive) Allocate(_ context.Context, r *plugin.AllocateRequest) (*plugin.AllocateResponse, error) {
	if n.drops {
		n.lists <- []string{"z"}
		n.k.Await(resource, func(devices map[string]string) bool { return devices["z"] != "" })
	}
	return &plugin.AllocateResponse{ContainerResponses: make([]*plugin.ContainerAllocateResponse, len(r.ContainerRequests))}, nil
}

// serve puts a plugin where the kubelet finds it.
func serve(t *testing.T, k *kubelettest.Kubelet, n *naive) {
	t.Helper()
	n.k, n.lists = k, make(chan []string, 2)
	n.lists <- []string{"a", "b"}
	listener, err := net.Listen("unix", filepath.Join(k.Dir(), "plugins_registry", "naive.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	plugin.RegisterDevicePluginServer(server, n)
	registration.RegisterRegistrationServer(server, n)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	k.Await(resource, func(devices map[string]string) bool { return len(devices) == 2 })
}

func dial(t *testing.T, k *kubelettest.Kubelet, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+filepath.Join(k.Dir(), socket), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestRemovedIDCrashesTheKubelet(t *testing.T) {
	for _, drops := range []bool{false, true} {
		k := kubelettest.Start(t, kubelettest.Options{MayCrash: drops})
		serve(t, k, &naive{drops: drops})
		if err := k.Admit(kubelettest.Pod("p", resource, 1)); err != nil {
			t.Fatal(err)
		}
		if got := k.Crashes() > 0; got != drops {
			t.Errorf("removed: %v, crashed: %v", drops, got)
		}
	}
}

// TestInitContainersAreOfferedAgain checks that the next container gets the id of a
// plain init container, and that only the next container is listed.
func TestInitContainersAreOfferedAgain(t *testing.T) {
	k := kubelettest.Start(t, kubelettest.Options{})
	serve(t, k, &naive{})
	pod := kubelettest.Pod("p", resource, 1)
	pod.Spec.InitContainers = []corev1.Container{kubelettest.Container("init", resource, 1)}
	if err := k.Admit(pod); err != nil {
		t.Fatal(err)
	}
	if calls := k.Calls(); len(calls) != 2 || calls[0] != calls[1] {
		t.Errorf("calls %v", calls)
	}
	list, err := podresources.NewPodResourcesListerClient(dial(t, k, "pod-resources/kubelet.sock")).
		List(t.Context(), &podresources.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if containers := list.GetPodResources()[0].GetContainers(); len(containers) != 1 || containers[0].GetName() != "app" {
		t.Errorf("the list shows %v", containers)
	}
}

// TestConnectedNameIsLost checks that a socket name that is registered while it is
// connected cannot be used until the kubelet restarts.
func TestConnectedNameIsLost(t *testing.T) {
	k := kubelettest.Start(t, kubelettest.Options{})
	n := &naive{statuses: make(chan *registration.RegistrationStatus)}
	serve(t, k, n)
	if first := <-n.statuses; !first.GetPluginRegistered() {
		t.Errorf("the first registration: %s", first.GetError())
	}
	if second := <-n.statuses; second.GetPluginRegistered() {
		t.Error("a connected name was registered again")
	}
	k.Drop(resource)
	for range 2 { // the first may have begun before
		if next := <-n.statuses; next.GetPluginRegistered() {
			t.Error("a lost name was registered again")
		}
	}
}
