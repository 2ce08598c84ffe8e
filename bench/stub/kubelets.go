package stub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	pods "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// pluginsDir is the directory that a kubelet scans for sockets of plugins.
const pluginsDir = "plugins_registry"

// Kubelets are the kubelets of many nodes.
type Kubelets struct {
	ctx     context.Context
	cancel  context.CancelFunc
	server  *grpc.Server
	watcher *fsnotify.Watcher
	running sync.WaitGroup

	mu   sync.Mutex
	dirs map[string]*Kubelet // by root directory
	errs []error
}

// NewKubelets returns kubelets for no node yet.
func NewKubelets() (*Kubelets, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch the directories of the kubelets: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &Kubelets{
		ctx: ctx, cancel: cancel, watcher: watcher, dirs: map[string]*Kubelet{},
		server: grpc.NewServer(grpc.WaitForHandlers(true), grpc.ReadBufferSize(bufferBytes), grpc.WriteBufferSize(bufferBytes)),
	}
	deviceplugin.RegisterRegistrationServer(k.server, deviceplugin.UnimplementedRegistrationServer{})
	podresources.RegisterPodResourcesListerServer(k.server, lister{k: k})
	pods.RegisterPodsServer(k.server, noPods{})
	k.running.Go(k.watch)
	return k, nil
}

// Close stops all kubelets, and returns the errors of their connections.
func (k *Kubelets) Close() error {
	k.cancel()
	k.server.Stop()
	err := k.watcher.Close()
	k.running.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, kubelet := range k.dirs {
		kubelet.close()
	}
	return errors.Join(append(k.errs, err)...)
}

// Add starts the kubelet of a node, whose root directory it creates. Add it before
// the node's agent starts.
func (k *Kubelets) Add(dir string) (*Kubelet, error) {
	kubelet := &Kubelet{dir: dir, resources: map[string]*Resource{}}
	k.mu.Lock()
	k.dirs[dir] = kubelet
	k.mu.Unlock()
	for _, name := range []string{pluginsDir, "device-plugins", "pod-resources", "pods-api"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, fmt.Errorf("start a kubelet: %w", err)
		}
	}
	for _, socket := range []string{"device-plugins/kubelet.sock", "pod-resources/kubelet.sock", "pods-api/pods-api.sock"} {
		listener, err := net.Listen("unix", filepath.Join(dir, socket))
		if err != nil {
			return nil, fmt.Errorf("start a kubelet: %w", err)
		}
		k.running.Go(func() { k.note(k.server.Serve(listener)) })
	}
	if err := k.watcher.Add(filepath.Join(dir, pluginsDir)); err != nil {
		return nil, fmt.Errorf("watch the kubelet's directory: %w", err)
	}
	return kubelet, nil
}

// note keeps an error for Close, unless the kubelets are being stopped.
func (k *Kubelets) note(err error) {
	const maxErrors = 5
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil && k.ctx.Err() == nil && len(k.errs) < maxErrors {
		k.errs = append(k.errs, err)
	}
}

// watch connects to each socket that appears.
func (k *Kubelets) watch() {
	var connecting sync.WaitGroup
	defer connecting.Wait()
	for event := range k.watcher.Events {
		if !event.Has(fsnotify.Create) {
			continue
		}
		k.mu.Lock()
		kubelet := k.dirs[filepath.Dir(filepath.Dir(event.Name))]
		k.mu.Unlock()
		if kubelet != nil {
			connecting.Go(func() { k.note(kubelet.connect(k.ctx, event.Name, &k.running)) })
		}
	}
}

// lister serves the podresources API of every node.
type lister struct {
	podresources.UnimplementedPodResourcesListerServer

	k *Kubelets
}

// List returns one Pod, which has all devices that the node's kubelet has allocated.
func (l lister) List(ctx context.Context, _ *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	from, _ := peer.FromContext(ctx)
	l.k.mu.Lock()
	kubelet := l.k.dirs[filepath.Dir(filepath.Dir(from.LocalAddr.String()))]
	l.k.mu.Unlock()
	container := &podresources.ContainerResources{Name: "app"}
	kubelet.mu.Lock()
	defer kubelet.mu.Unlock()
	for name, resource := range kubelet.resources {
		if len(resource.allocated) > 0 {
			container.Devices = append(container.Devices, &podresources.ContainerDevices{
				ResourceName: name, DeviceIds: append([]string(nil), resource.allocated...),
			})
		}
	}
	if len(container.Devices) == 0 {
		return &podresources.ListPodResourcesResponse{}, nil
	}
	return &podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{{
		Namespace: "bench", Name: "bench", Containers: []*podresources.ContainerResources{container},
	}}}, nil
}

// noPods serves the Pods API of a node without Pods.
type noPods struct{ pods.UnimplementedPodsServer }

// WatchPods never sends a Pod.
func (noPods) WatchPods(_ *pods.WatchPodsRequest, stream grpc.ServerStreamingServer[pods.WatchPodsEvent]) error {
	if err := stream.Send(&pods.WatchPodsEvent{Type: pods.EventType_INITIAL_SYNC_COMPLETE}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// callTimeout bounds a call of a plugin; that of the real kubelet is unlimited.
const callTimeout = 30 * time.Second
