package deviceplugin

import (
	"context"
	"log/slog"

	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/serve/kubelet"
)

// plugins is where the kubelet finds the device plugins of this node.
type plugins interface {
	// Clean removes what an earlier agent left behind.
	Clean() error
	// Run calls started whenever the kubelet has started, until ctx is done. An error
	// means that the agent must restart to reach the kubelet.
	Run(ctx context.Context, started func()) error
	// Serve serves a resource to the kubelet until ctx is done.
	Serve(ctx context.Context, resource string, server plugin.DevicePluginServer)
}

// sockets are device plugins on sockets in the kubelet's directories.
type sockets struct {
	dir       string
	registrar *kubelet.Registrar
	log       *slog.Logger
}

func newSockets(dir string, log *slog.Logger) *sockets {
	return &sockets{dir: dir, registrar: kubelet.NewRegistrar(dir, log), log: log}
}

// Clean implements [plugins].
func (s *sockets) Clean() error { return kubelet.RemoveSockets(s.dir) }

// Run implements [plugins].
func (s *sockets) Run(ctx context.Context, started func()) error {
	return s.registrar.Run(ctx, started)
}

// Serve implements [plugins].
func (s *sockets) Serve(ctx context.Context, resource string, server plugin.DevicePluginServer) {
	p := kubelet.Plugin{Resource: resource, Server: server, Registrar: s.registrar, Log: s.log.With("resource", resource)}
	p.Run(ctx)
}
