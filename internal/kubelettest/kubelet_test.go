package kubelettest_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"akri.sh/akri/internal/kubelettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const resource = "akri.sh/cam"

// naive is a plugin that removes an id from its list when a call names it.
type naive struct {
	plugin.UnimplementedDevicePluginServer
	registration.UnimplementedRegistrationServer
	k     *kubelettest.Kubelet
	drops bool
	lists chan []string
}

func (n *naive) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.DevicePlugin, Name: resource, SupportedVersions: []string{plugin.Version},
	}, nil
}

func (n *naive) NotifyRegistrationStatus(
	context.Context, *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	return &registration.RegistrationStatusResponse{}, nil
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
