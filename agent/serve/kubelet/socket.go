package kubelet

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
)

// Directories and sockets below the kubelet's root directory.
const (
	listSocket = "pod-resources/kubelet.sock"
	// pluginsDir is scanned by the kubelet's plugin watcher, which finds the
	// sockets again after a restart of the kubelet (pkg/kubelet/pluginmanager).
	pluginsDir = "plugins_registry"
	// kubeletSocket is the kubelet's own, which it creates when it starts.
	kubeletSocket = "device-plugins/kubelet.sock"
)

const (
	socketPrefix = "akri-"
	socketSuffix = ".sock"
	// maxPathBytes is the capacity of a Unix socket address on Linux, without the
	// terminating zero (sun_path in unix(7)).
	maxPathBytes = 107
)

// socketPath returns a path in dir that was never used before. If a socket name is
// registered twice, the kubelet no longer sees the resource until it restarts.
func socketPath(dir, resource string) (string, error) {
	sum := sha256.Sum256([]byte(resource))
	name := socketPrefix + hex.EncodeToString(sum[:4]) + "-" + strings.ToLower(rand.Text()[:10]) + socketSuffix
	path := filepath.Join(dir, name)
	if len(path) > maxPathBytes {
		return "", fmt.Errorf("socket path %s exceeds the limit of %d bytes: use a shorter kubelet directory", path, maxPathBytes)
	}
	return path, nil
}
