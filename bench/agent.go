package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"akri.sh/akri/discovery"
	"akri.sh/akri/internal/kubelettest"
)

// manyDevices is the number of devices for which the agent's memory has a limit.
const manyDevices = 50

// The limits of the agent's memory in MB.
const (
	maxEmptyMemory = 18
	maxFullMemory  = 22
)

// handler is a discovery handler that sends the lists of a measurement.
type handler chan []discovery.Device

// Discover implements [discovery.Handler].
func (h handler) Discover(ctx context.Context, _ discovery.Request, send func([]discovery.Device) error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case list := <-h:
			if err := send(list); err != nil {
				return err
			}
		}
	}
}

// node is the node of a running agent: its kubelet, and handlers whose devices only this
// node sees, or others, too.
type node struct {
	*plane
	kubelet       *kubelettest.Kubelet
	local, shared handler
	devices       int // created so far
}

// agent measures one agent.
func (b *bench) agent(ctx context.Context) (err error) {
	p, err := b.startPlane(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	kubelet, err := kubelettest.New(kubelettest.Options{}, b.logf)
	if err != nil {
		return fmt.Errorf("start a kubelet: %w", err)
	}
	defer kubelet.Close()
	config, err := p.config("kubelet")
	if err != nil {
		return err
	}
	if err := kubelet.Join(config, "bench"); err != nil {
		return err
	}
	dir := filepath.Join(p.dir, "h")
	if err := os.Mkdir(dir, 0o700); err != nil { // the agent does not create it
		return fmt.Errorf("create the directory of the handlers: %w", err)
	}
	n := &node{plane: p, kubelet: kubelet, local: make(handler), shared: make(handler)}
	serving, cancel := context.WithCancel(ctx)
	var group errgroup.Group
	for name, one := range map[string]handler{"local": n.local, "shared": n.shared} {
		settings := discovery.Options{Dir: dir, Shared: name == "shared", Logger: slog.New(slog.DiscardHandler)}
		group.Go(func() error { return discovery.Serve(serving, name, one, settings) })
	}
	defer func() { cancel(); err = errors.Join(err, group.Wait()) }()
	running, err := b.start(p, agentName, "--node-name=bench", "--discovery-handlers-dir="+dir, "--kubelet-dir="+kubelet.Dir(),
		"--health-probe-bind-address=0")
	if err != nil {
		return err
	}
	if err := b.agentAtRest(ctx, n, running); err != nil {
		return err
	}
	if err := b.messages(ctx, n); err != nil {
		return err
	}
	return b.slots(ctx, n)
}

// agentAtRest measures the agent without devices, with many, and after they have left. This
// is first, because the resource of a device that has left remains for half a minute.
func (b *bench) agentAtRest(ctx context.Context, n *node, running *program) error {
	if err := n.configure(ctx, "local"); err != nil {
		return err
	}
	if err := send(ctx, n.local, nil); err != nil { // waits until the agent runs
		return err
	}
	if err := b.rest(ctx, n.plane, running, "without devices", maxEmptyMemory); err != nil {
		return err
	}
	limit := 0.
	if b.Devices == manyDevices {
		limit = maxFullMemory
	}
	found, err := n.find(ctx, n.local, b.Devices)
	if err != nil {
		return err
	}
	if err := b.rest(ctx, n.plane, running, fmt.Sprintf("%d Instances", b.Devices), limit); err != nil {
		return err
	}
	if err := send(ctx, n.local, nil); err != nil {
		return err
	}
	for _, instance := range found {
		if err := n.awaitOffered(ctx, instance.GetName(), 0); err != nil {
			return err
		}
	}
	return b.rest(ctx, n.plane, running, "after they have left", limit)
}

// configure creates a Configuration for the handler with the same name.
func (n *node) configure(ctx context.Context, name string) error {
	_, err := n.admin.Resource(configurations).Namespace(namespace).Create(ctx, object("akri.sh/v0", "Configuration", name, map[string]any{
		"spec": map[string]any{"discoveryHandler": map[string]any{"name": name}, "capacity": int64(1)},
	}), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create a Configuration: %w", err)
	}
	return nil
}

// send sends a list of devices to the agent as soon as it asks the handler.
func send(ctx context.Context, to handler, devices []discovery.Device) error {
	const timeout = time.Minute
	select {
	case to <- devices:
		return nil
	case <-time.After(timeout):
		return fmt.Errorf("the agent does not ask the handler within %v", timeout)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// next returns devices that have not existed before.
func (n *node) next(count int) []discovery.Device {
	devices := make([]discovery.Device, count)
	for i := range devices {
		n.devices++
		devices[i] = discovery.Device{
			ID:         fmt.Sprintf("bench-%04d", n.devices),
			Properties: map[string]string{"BENCH_DEVICE": fmt.Sprintf("/dev/bench%d", n.devices)},
		}
	}
	return devices
}

// find lets a handler find new devices, and waits until the kubelet has their resources.
// It returns their Instances.
func (n *node) find(ctx context.Context, by handler, count int) ([]*unstructured.Unstructured, error) {
	events, err := n.watch(ctx, n.admin, instances, "")
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	if err := send(ctx, by, n.next(count)); err != nil {
		return nil, err
	}
	found, err := awaitEvents(ctx, events, count, added)
	if err != nil {
		return nil, err
	}
	for _, instance := range found {
		if err := n.awaitOffered(ctx, instance.GetName(), 1); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// awaitOffered waits until the kubelet has so many slots of an Instance.
func (n *node) awaitOffered(ctx context.Context, instance string, slots int) error {
	const timeout = 5 * time.Minute
	err := wait.PollUntilContextTimeout(ctx, pollInterval, timeout, true, func(context.Context) (bool, error) {
		return len(n.kubelet.Devices("akri.sh/"+instance)) == slots, nil
	})
	if err != nil {
		return fmt.Errorf("wait until the kubelet has %d slots of %s: %w", slots, instance, err)
	}
	return nil
}
