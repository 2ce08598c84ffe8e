package agent

import (
	"context"
	"log/slog"

	"k8s.io/client-go/rest"

	"akri.sh/akri/internal/kubeversion"
)

// awaitAPIServer waits for the version of the API server, and logs what the agent does
// without. It returns an error if the agent does not run on this version.
func awaitAPIServer(ctx context.Context, config *rest.Config, log *slog.Logger) error {
	version, err := kubeversion.Await(ctx, config, func(err error) { log.Debug("The version of the API server is not known yet", "err", err) })
	if err != nil {
		return err
	}
	log.Info("The API server has answered", "version", version)
	if lack := kubeversion.Lacking(version); lack != "" {
		log.Info("Akri may not work with this version of Kubernetes", "because", lack, "see", kubeversion.Page)
	}
	return nil
}
