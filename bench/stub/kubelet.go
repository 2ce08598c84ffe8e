package stub

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	pluginregistration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// bufferBytes are those of a connection: messages are small and connections are many.
const bufferBytes = 4 << 10

// Kubelet is the kubelet of one node.
type Kubelet struct {
	dir string

	mu        sync.Mutex
	resources map[string]*Resource // by name
}

// Resource is a resource that a device plugin offers.
type Resource struct {
	// Healthy are the ids that can be allocated, in the order of the last list.
	Healthy []string
	// Listed is when the last list arrived.
	Listed time.Time

	conn      *grpc.ClientConn
	client    deviceplugin.DevicePluginClient
	allocated []string
}

// Resources returns copies of all resources that plugins offer, by name.
func (k *Kubelet) Resources() map[string]Resource {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make(map[string]Resource, len(k.resources))
	for name, resource := range k.resources {
		all[name] = *resource
	}
	return all
}

// Offered returns the number of Instances of a Configuration whose resource has a
// healthy id.
func (k *Kubelet) Offered(configuration string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	count := 0
	for name, resource := range k.resources {
		if strings.HasPrefix(name, "akri.sh/"+configuration+"-") && len(resource.Healthy) > 0 {
			count++
		}
	}
	return count
}

// Allocate allocates a device to a container, which keeps it.
func (k *Kubelet) Allocate(ctx context.Context, name, id string) error {
	k.mu.Lock()
	resource := k.resources[name]
	k.mu.Unlock()
	if resource == nil {
		return fmt.Errorf("allocate %s: no plugin offers the resource", name)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := resource.client.Allocate(ctx, &deviceplugin.AllocateRequest{
		ContainerRequests: []*deviceplugin.ContainerAllocateRequest{{DevicesIds: []string{id}}},
	})
	if err != nil {
		return fmt.Errorf("allocate %s of %s: %w", id, name, err)
	}
	if len(answer.GetContainerResponses()) != 1 {
		return fmt.Errorf("allocate %s of %s: got %d responses, want 1", id, name, len(answer.GetContainerResponses()))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	resource.allocated = append(resource.allocated, id)
	return nil
}

// connect registers the plugin at a socket as the kubelet's plugin watcher does, and
// follows its list until the plugin or ctx ends.
func (k *Kubelet) connect(ctx context.Context, socket string, running *sync.WaitGroup) error {
	conn, err := grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithReadBufferSize(bufferBytes), grpc.WithWriteBufferSize(bufferBytes), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)), // the file appears before the plugin listens
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{
			BaseDelay: 10 * time.Millisecond, Multiplier: 1.6, MaxDelay: time.Second,
		}, MinConnectTimeout: time.Second}))
	if err != nil {
		return fmt.Errorf("connect to a plugin: %w", err)
	}
	name, stream, err := introduce(ctx, conn)
	if err != nil {
		conn.Close()
		return fmt.Errorf("register the plugin at %s: %w", socket, err)
	}
	resource := &Resource{conn: conn, client: deviceplugin.NewDevicePluginClient(conn)}
	k.mu.Lock()
	if former := k.resources[name]; former != nil {
		former.conn.Close()
	}
	k.resources[name] = resource
	k.mu.Unlock()
	running.Go(func() { k.follow(name, resource, stream) })
	return nil
}

// introduce performs the calls of a registration, and returns the plugin's resource and
// its stream of lists.
func introduce(ctx context.Context, conn *grpc.ClientConn) (string, deviceplugin.DevicePlugin_ListAndWatchClient, error) {
	timed, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	registration := pluginregistration.NewRegistrationClient(conn)
	info, err := registration.GetInfo(timed, &pluginregistration.InfoRequest{})
	if err != nil {
		return "", nil, err
	}
	client := deviceplugin.NewDevicePluginClient(conn)
	if _, err := client.GetDevicePluginOptions(timed, &deviceplugin.Empty{}); err != nil {
		return "", nil, err
	}
	stream, err := client.ListAndWatch(ctx, &deviceplugin.Empty{})
	if err != nil {
		return "", nil, err
	}
	_, err = registration.NotifyRegistrationStatus(timed, &pluginregistration.RegistrationStatus{PluginRegistered: true})
	return info.GetName(), stream, err
}

// follow records the lists of a plugin. It forgets the resource when the stream ends.
func (k *Kubelet) follow(name string, resource *Resource, stream deviceplugin.DevicePlugin_ListAndWatchClient) {
	defer resource.conn.Close()
	for {
		list, err := stream.Recv()
		k.mu.Lock()
		if err != nil {
			if k.resources[name] == resource {
				delete(k.resources, name)
			}
			k.mu.Unlock()
			return
		}
		var healthy []string
		for _, d := range list.GetDevices() {
			if d.GetHealth() == deviceplugin.Healthy {
				healthy = append(healthy, d.GetID())
			}
		}
		resource.Healthy, resource.Listed = healthy, time.Now()
		k.mu.Unlock()
	}
}

// close closes the connections to all plugins.
func (k *Kubelet) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, resource := range k.resources {
		resource.conn.Close()
	}
}
