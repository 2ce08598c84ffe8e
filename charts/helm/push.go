package helm

import (
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	ociregistry "helm.sh/helm/v4/pkg/registry"
)

// Push publishes an archive that [Package] wrote as registry/akri:VERSION, from where
// helm installs it as oci://registry/akri. It uses the credentials of helm registry login
// and docker login, and TLS, except to a loopback address or if plainHTTP is true. It
// returns the chart's name with its digest. To publish again changes nothing.
func Push(file, registry string, plainHTTP bool) (string, error) {
	if !registryName.MatchString(registry) {
		return "", fmt.Errorf("push %s: registry %q: use HOST/PATH, such as registry.example.com/akri", file, registry)
	}
	c, err := loader.LoadFile(file)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", file, err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var options []ociregistry.ClientOption
	if plainHTTP || isLoopback(registry) {
		options = append(options, ociregistry.ClientOptPlainHTTP())
	}
	client, err := ociregistry.NewClient(options...)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", file, err)
	}
	name := registry + "/" + c.Name() + ":" + c.Metadata.Version
	pushed, err := client.Push(data, name, ociregistry.PushOptCreationTime(released.UTC().Format(time.RFC3339)))
	if err != nil {
		return "", fmt.Errorf("push %s: %w", name, err)
	}
	return name + "@" + pushed.Manifest.Digest, nil
}

// isLoopback reports whether a registry is on this machine.
func isLoopback(registry string) bool {
	host, _, _ := strings.Cut(registry, "/")
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
