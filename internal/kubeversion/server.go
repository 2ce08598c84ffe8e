package kubeversion

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"akri.sh/akri/internal/backoff"
)

// minDelay and maxDelay bound the delay between attempts to read the API server's version.
const minDelay, maxDelay = time.Second, 30 * time.Second

// Verify waits for the version of the API server, and logs what Akri does without on it. The
// error is a *TooOldError if Akri does not run on it. There is none if ctx is done first.
func Verify(ctx context.Context, config *rest.Config, log *slog.Logger) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("create the client of the API server: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("address of the API server: %w", err)
	}
	known, err := read(ctx, client, server.JoinPath("version").String())
	for failures := 0; err != nil; failures++ {
		// The first level below information, which the controller numbers 1.
		log.Log(ctx, slog.LevelInfo-1, "The version of the API server is not known yet", "err", err)
		if !backoff.Sleep(ctx, wait.Jitter(backoff.Delay(minDelay, maxDelay, failures), 0.5)) {
			return nil
		}
		known, err = read(ctx, client, server.JoinPath("version").String())
	}
	if err := Check(known); err != nil {
		return err
	}
	log.Info("The API server has answered", "version", known)
	if lack := Lacking(known); lack != "" {
		log.Info("Akri may not work with this version of Kubernetes", "because", lack, "see", page)
	}
	return nil
}

// read reads the version of the API server.
func read(ctx context.Context, client *http.Client, url string) (string, error) {
	const timeout, maxBytes = 30 * time.Second, 64 << 10
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("read the version of the API server: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("read the version of the API server: %s", response.Status)
	}
	var info version.Info
	if err := json.NewDecoder(http.MaxBytesReader(nil, response.Body, maxBytes)).Decode(&info); err != nil {
		return "", fmt.Errorf("read the version of the API server: %w", err)
	}
	return info.GitVersion, nil
}
