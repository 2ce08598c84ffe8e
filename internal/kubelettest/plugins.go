package kubelettest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	pluginregistration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// scanInterval is how often the plugin directory is read. The kubelet takes up to a
// second.
const scanInterval = 20 * time.Millisecond

// pluginState is the plugin of one resource.
type pluginState struct {
	socket    string
	conn      *grpc.ClientConn
	client    plugin.DevicePluginClient
	preferred bool
	devices   map[string]string // id, health
	lists     int               // received
	connected bool
	forgotten bool // the end of the stream is not noticed
}

func (p *pluginState) close() {
	p.connected = false
	if p.conn != nil {
		_ = p.conn.Close()
	}
}

// connect registers a plugin: it reads the options and opens the stream.
// A second registration of a name replaces the first.
func (k *Kubelet) connect(ctx context.Context, resource, path string) error {
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	client := plugin.NewDevicePluginClient(conn)
	options, err := client.GetDevicePluginOptions(ctx, &plugin.Empty{})
	if err != nil {
		_ = conn.Close()
		return err
	}
	stream, err := client.ListAndWatch(ctx, &plugin.Empty{})
	if err != nil {
		_ = conn.Close()
		return err
	}
	if k.trapped(resource, path) {
		_ = conn.Close()
		return fmt.Errorf("device plugin already connected to %s", path)
	}
	p := &pluginState{
		socket: path, conn: conn, client: client, connected: true,
		preferred: options.GetGetPreferredAllocationAvailable(), devices: map[string]string{},
	}
	k.mu.Lock()
	if old := k.plugins[resource]; old != nil {
		p.devices = maps.Clone(old.devices) // until the new plugin sends its list
		old.close()
	}
	k.plugins[resource] = p
	k.mu.Unlock()
	k.running.Go(func() {
		for {
			list, err := stream.Recv()
			k.mu.Lock()
			if err != nil {
				if !p.forgotten {
					p.close()
				}
				k.notify()
				k.mu.Unlock()
				return
			}
			p.lists++
			p.devices = map[string]string{}
			for _, d := range list.GetDevices() {
				p.devices[d.GetID()] = d.GetHealth()
			}
			k.notify()
			k.mu.Unlock()
		}
	})
	return nil
}

// trapped reports whether a socket name was registered while it was connected. The
// kubelet then forgets the live connection, so that it does not notice its end, and
// refuses the name until it restarts.
func (k *Kubelet) trapped(resource, path string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.plugins[resource]; old != nil && old.connected && old.socket == path {
		k.dead[path] = true
		old.forgotten = true
	}
	return k.dead[path]
}

// scan looks for plugins in plugins_registry, until ctx is done. Like the kubelet's watch
// (pkg/kubelet/pluginmanager/pluginwatcher), it does not follow when the directory is
// removed and created again.
func (k *Kubelet) scan(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(k.options.ScanDelay):
	}
	path := filepath.Join(k.dir, "plugins_registry")
	_ = os.MkdirAll(path, 0o755)
	dir, err := os.Open(path)
	if err != nil {
		k.errorf("kubelet: %v", err)
		return
	}
	defer dir.Close()
	tick := time.NewTicker(scanInterval)
	defer tick.Stop()
	for {
		_, _ = dir.Seek(0, io.SeekStart)
		entries, _ := dir.ReadDir(-1)
		present := map[string]bool{}
		for _, entry := range entries {
			path := filepath.Join(k.dir, "plugins_registry", entry.Name())
			present[path] = true
			k.mu.Lock()
			known := k.seen[path]
			k.seen[path] = true
			k.mu.Unlock()
			if known {
				continue
			}
			if err := k.handle(ctx, path); err != nil {
				k.mu.Lock()
				delete(k.seen, path) // retried, as the kubelet does
				k.mu.Unlock()
			}
		}
		k.mu.Lock()
		maps.DeleteFunc(k.seen, func(path string, _ bool) bool { return !present[path] })
		for _, p := range k.plugins { // a plugin whose socket was deleted is deregistered
			if filepath.Base(filepath.Dir(p.socket)) == "plugins_registry" && !present[p.socket] {
				p.close()
			}
		}
		k.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// handle handles a socket that scan found.
func (k *Kubelet) handle(ctx context.Context, path string) error {
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	client := pluginregistration.NewRegistrationClient(conn)
	info, err := client.GetInfo(ctx, &pluginregistration.InfoRequest{})
	if err != nil {
		return err
	}
	outcome := &pluginregistration.RegistrationStatus{PluginRegistered: true}
	if info.GetType() != pluginregistration.DevicePlugin {
		outcome = &pluginregistration.RegistrationStatus{Error: "no handler for type " + info.GetType()}
	} else if err := k.connect(ctx, info.GetName(), path); err != nil {
		outcome = &pluginregistration.RegistrationStatus{Error: err.Error()}
	}
	_, err = client.NotifyRegistrationStatus(ctx, outcome)
	return err
}

// notify wakes the callers that wait for a list. The caller holds mu.
func (k *Kubelet) notify() {
	close(k.changed)
	k.changed = make(chan struct{})
}

// Devices returns the list of a resource, health by id, or nil if no plugin is
// connected.
func (k *Kubelet) Devices(resource string) map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.plugins[resource]
	if p == nil || !p.connected {
		return nil
	}
	return maps.Clone(p.devices)
}

// Lists returns how many lists the plugin of a resource has sent on its stream.
func (k *Kubelet) Lists(resource string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.plugins[resource]; p != nil {
		return p.lists
	}
	return 0
}

// LastDevices returns the last list of a resource, even if its plugin is no longer
// connected.
func (k *Kubelet) LastDevices(resource string) map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.plugins[resource]; p != nil {
		return maps.Clone(p.devices)
	}
	return nil
}

// Socket returns the socket of a resource's plugin.
func (k *Kubelet) Socket(resource string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.plugins[resource]; p != nil {
		return p.socket
	}
	return ""
}

// Await waits until the list of a resource satisfies a condition.
func (k *Kubelet) Await(resource string, holds func(devices map[string]string) bool) map[string]string {
	k.t.Helper()
	deadline := time.After(15 * time.Second)
	for {
		k.mu.Lock()
		changed := k.changed
		k.mu.Unlock()
		devices := k.Devices(resource)
		if holds(devices) {
			return devices
		}
		select {
		case <-changed:
		case <-time.After(50 * time.Millisecond): // a new registration
		case <-deadline:
			k.t.Fatalf("the list of %s did not reach the expected state: %v", resource, devices)
		}
	}
}

// Drop closes the stream of a resource's plugin, as the kubelet does after an error.
func (k *Kubelet) Drop(resource string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.plugins[resource]; p != nil {
		p.close()
	}
}
