package stub_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	pluginregistration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"akri.sh/akri/bench/stub"
)

const resource = "akri.sh/bench-1a2b3c"

// plugin has one device, which is healthy if the test says so.
type plugin struct {
	deviceplugin.UnimplementedDevicePluginServer
	pluginregistration.UnimplementedRegistrationServer

	health chan string
}

func (p *plugin) GetInfo(context.Context, *pluginregistration.InfoRequest) (*pluginregistration.PluginInfo, error) {
	return &pluginregistration.PluginInfo{Type: pluginregistration.DevicePlugin, Name: resource}, nil
}

func (p *plugin) NotifyRegistrationStatus(
	context.Context, *pluginregistration.RegistrationStatus,
) (*pluginregistration.RegistrationStatusResponse, error) {
	return &pluginregistration.RegistrationStatusResponse{}, nil
}

func (p *plugin) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	return &deviceplugin.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *deviceplugin.Empty, stream deviceplugin.DevicePlugin_ListAndWatchServer) error {
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case health := <-p.health:
			if err := stream.Send(&deviceplugin.ListAndWatchResponse{Devices: []*deviceplugin.Device{{ID: "a", Health: health}}}); err != nil {
				return err
			}
		}
	}
}

func (p *plugin) Allocate(context.Context, *deviceplugin.AllocateRequest) (*deviceplugin.AllocateResponse, error) {
	return &deviceplugin.AllocateResponse{ContainerResponses: []*deviceplugin.ContainerAllocateResponse{{}}}, nil
}

// The kubelet finds a plugin, follows its list, lists what it has allocated, and
// forgets the plugin when it ends. A second kubelet of the same server has none of it.
func TestKubelets(t *testing.T) {
	dir, err := os.MkdirTemp("", "stub") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	kubelets, err := stub.NewKubelets()
	if err != nil {
		t.Fatal(err)
	}
	ours, err1 := kubelets.Add(filepath.Join(dir, "1"))
	other, err2 := kubelets.Add(filepath.Join(dir, "2"))
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "1", "plugins_registry", "bench.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server, p := grpc.NewServer(), &plugin{health: make(chan string)}
	deviceplugin.RegisterDevicePluginServer(server, p)
	pluginregistration.RegisterRegistrationServer(server, p)
	go server.Serve(listener)

	p.health <- deviceplugin.Unhealthy
	await(t, "the resource is known", func() bool { return !ours.Resources()[resource].Listed.IsZero() })
	if ours.Offered("bench") != 0 {
		t.Error("an unhealthy device counts as offered")
	}
	p.health <- deviceplugin.Healthy
	await(t, "the device is offered", func() bool { return ours.Offered("bench") == 1 })
	if ours.Offered("other") != 0 || other.Offered("bench") != 0 {
		t.Error("the device is offered for another Configuration, or on another node")
	}
	if err := ours.Allocate(t.Context(), resource, "a"); err != nil {
		t.Error(err)
	}
	if got := list(t, filepath.Join(dir, "1")); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the kubelet lists %v, want the allocated device", got)
	}
	if got := list(t, filepath.Join(dir, "2")); len(got) != 0 {
		t.Errorf("the other kubelet lists %v", got)
	}
	server.Stop()
	await(t, "the resource is gone", func() bool { return len(ours.Resources()) == 0 })
	if err := kubelets.Close(); err != nil {
		t.Error(err)
	}
}

// list returns the ids in a kubelet's podresources list.
func list(t *testing.T, dir string) []string {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+filepath.Join(dir, "pod-resources/kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	response, err := podresources.NewPodResourcesListerClient(conn).List(t.Context(), &podresources.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, pod := range response.GetPodResources() {
		for _, container := range pod.GetContainers() {
			for _, devices := range container.GetDevices() {
				ids = append(ids, devices.GetDeviceIds()...)
			}
		}
	}
	return ids
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not true: %s", what)
		}
	}
}
