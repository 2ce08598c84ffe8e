package agent

import (
	"context"
	"log/slog"
	"sync"

	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/debug"
	"akri.sh/akri/internal/kubeversion"
)

// apiServer is what the agent knows about the API server.
type apiServer struct {
	mu      sync.Mutex
	version string // empty until it has answered
}

// run waits for the version of the API server, and logs what the agent does without.
// It returns an error if the agent does not run on this version.
func (s *apiServer) run(ctx context.Context, config *rest.Config, log *slog.Logger) error {
	version, err := kubeversion.Await(ctx, config, func(err error) { log.Debug("The version of the API server is not known yet", "err", err) })
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.version = version
	s.mu.Unlock()
	log.Info("The API server has answered", "version", version)
	for _, lack := range kubeversion.Lacking(version) {
		log.Info("This version of Kubernetes is special", "because", lack, "see", kubeversion.Page)
	}
	return nil
}

// debug returns what the debug endpoint shows of the cluster's versions.
func (s *apiServer) debug(source string) debug.Kubernetes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return debug.Kubernetes{APIServer: s.version, Pods: source, Lacking: kubeversion.Lacking(s.version)}
}
