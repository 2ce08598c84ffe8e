package kubeversion

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"akri.sh/akri/internal/backoff"
)

// minDelay and maxDelay bound the delay between attempts to read the API server's version.
const minDelay, maxDelay = time.Second, 30 * time.Second

// Await returns the version of the API server as soon as it can be read, and a
// *TooOldError if Akri does not run on it. Until then, failed receives the error of each
// attempt. Await returns the context's error if ctx is done first.
func Await(ctx context.Context, config *rest.Config, failed func(error)) (string, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", fmt.Errorf("create the client of the API server: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return "", fmt.Errorf("address of the API server: %w", err)
	}
	for failures := 0; ; failures++ {
		read, err := read(ctx, client, server.JoinPath("version").String())
		if err == nil {
			return read, Check(read)
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		failed(err)
		backoff.Sleep(ctx, wait.Jitter(backoff.Delay(minDelay, maxDelay, failures), 0.5))
	}
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
