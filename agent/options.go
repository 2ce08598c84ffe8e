package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"k8s.io/client-go/rest"

	v0 "akri.sh/akri/api/v0"
)

// Options configure an agent.
type Options struct {
	// NodeName is the node's name in the API server.
	NodeName string
	// HandlersDir is the directory where discovery handlers register and listen.
	HandlersDir string
	// KubeletDir is the kubelet's root directory.
	KubeletDir string
	// MetricsAddress is the address of /metrics, /healthz and /readyz; "0" turns
	// them off.
	MetricsAddress string
	// AllowCrossNamespaceProperties allows discoveryProperties to refer to Secrets
	// and ConfigMaps outside the Configuration's namespace.
	AllowCrossNamespaceProperties bool
	// Config configures the connection to the API server.
	Config *rest.Config
	// Logger receives the agent's log.
	Logger *slog.Logger
}

func (o Options) validate() error {
	if o.NodeName == "" {
		return errors.New("the node name is not set: use --node-name, or set the environment variable NODE_NAME or AGENT_NODE_NAME (in a pod, from the field spec.nodeName)")
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

// manager returns the agent's field manager. The API server limits its length.
func (o Options) manager() string {
	const maxBytes = 128
	manager := v0.FieldManagerAgentPrefix + o.NodeName
	if len(manager) > maxBytes {
		manager = v0.FieldManagerAgentPrefix + v0.NodeLabel(o.NodeName) // contains a digest
	}
	return manager[:min(len(manager), maxBytes)]
}
