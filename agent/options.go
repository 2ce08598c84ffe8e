package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/discover/hostpaths"
	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/discovery/embeddable"
)

// Options configure an agent.
type Options struct {
	// NodeName is the node's name in the API server.
	NodeName string
	// HandlersDir is the directory where discovery handlers register and listen.
	HandlersDir string
	// KubeletDir is the kubelet's root directory.
	KubeletDir string
	// MetricsAddress is the address of /metrics; "" or "0" turns it off.
	MetricsAddress string
	// ProbeAddress is the address of /healthz and /readyz; "" or "0" turns them off.
	ProbeAddress string
	// AllowCrossNamespaceProperties allows discoveryProperties to refer to Secrets
	// and ConfigMaps outside the Configuration's namespace.
	AllowCrossNamespaceProperties bool
	// NetworkHandlers are the discovery handlers on the network that may register.
	NetworkHandlers registry.Network
	// StaticHandlers are discovery handlers on the network that do not register.
	StaticHandlers []registry.Entry
	// EmbeddedHandlers are discovery handlers that run in the agent's process. Their
	// names differ.
	EmbeddedHandlers []embeddable.Handler
	// HostPaths are the device files and mounts that discovery handlers may give to
	// containers.
	HostPaths hostpaths.Policy
	// Config configures the connection to the API server.
	Config *rest.Config
	// Logger receives the agent's log.
	Logger *slog.Logger

	workerLimit     time.Duration // of a test
	accountingLimit time.Duration // of a test
	missingDelay    time.Duration // of a test
}

func (o Options) validate() error {
	if o.NodeName == "" {
		return errors.New("the node name is not set: use --node-name, or set the environment variable NODE_NAME or AGENT_NODE_NAME " +
			"(in a Pod, from the field spec.nodeName)")
	}
	if err := o.NetworkHandlers.Validate(); err != nil {
		return err
	}
	for _, handler := range o.StaticHandlers {
		if err := o.NetworkHandlers.PermitStatic(handler.Endpoint); err != nil {
			return fmt.Errorf("--static-handlers: %w", err)
		}
	}
	info, err := os.Stat(o.HandlersDir)
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		return fmt.Errorf("discovery handlers' directory: %w: create it, or set another one with --discovery-handlers-dir", err)
	}
	return nil
}
