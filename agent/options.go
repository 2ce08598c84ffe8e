package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/device"
	v0 "akri.sh/akri/api/v0"
)

// Options say where an agent runs.
type Options struct {
	// NodeName is the node's name in the API server.
	NodeName string
	// HandlersDirectory is where discovery handlers register and listen.
	HandlersDirectory string
	// KubeletDirectory is the kubelet's root.
	KubeletDirectory string
	// MetricsAddress serves /metrics, /healthz and /readyz; "0" serves nothing.
	MetricsAddress string
	// AllowCrossNamespaceProperties lets discoveryProperties refer to Secrets
	// and ConfigMaps of other namespaces than the Configuration's.
	AllowCrossNamespaceProperties bool
	// Config is the way to the API server.
	Config *rest.Config
	// Logger takes the agent's log.
	Logger *slog.Logger
	// Sink takes the devices instead of the kubelet; for tests.
	Sink device.Sink
}

func (o Options) validate() error {
	if o.NodeName == "" {
		return errors.New("the node's name is not set: use --node-name, or the environment variable NODE_NAME or AGENT_NODE_NAME, in a pod by a field reference to spec.nodeName")
	}
	info, err := os.Stat(o.HandlersDirectory)
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a directory")
	}
	if err != nil {
		return fmt.Errorf("directory of the discovery handlers: %w: make it, or name another one by --discovery-handlers-dir", err)
	}
	return nil
}

// manager is the field manager under which this agent writes. The API server
// limits its length.
func (o Options) manager() string {
	const longest = 128
	manager := v0.FieldManagerAgentPrefix + o.NodeName
	if len(manager) > longest {
		manager = v0.FieldManagerAgentPrefix + v0.NodeLabel(o.NodeName) // a digest
	}
	return manager[:min(len(manager), longest)]
}
