package deviceplugin

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Folders and sockets below the kubelet's root folder.
const (
	// pluginsDir is scanned by the kubelet's plugin watcher, which survives a
	// restart of the kubelet without our doing (pkg/kubelet/pluginmanager).
	pluginsDir = "plugins_registry"
	// devicesDir holds the socket kubelet.sock, at which plugins can register
	// themselves. The kubelet empties the folder when it starts.
	devicesDir = "device-plugins"
	// registerSocket is the kubelet's own socket in devicesDir.
	registerSocket = "kubelet.sock"
)

const (
	socketPrefix = "akri-"
	socketSuffix = ".sock"
	// longestPath is what the address of a Unix socket can hold on Linux, less
	// the zero at its end (sun_path in unix(7)).
	longestPath = 107
)

// socketPath makes a socket name that was never used before: a kubelet at which
// one name is registered twice goes blind for it until it is restarted.
func socketPath(dir, resource string) (string, error) {
	sum := sha256.Sum256([]byte(resource))
	name := socketPrefix + hex.EncodeToString(sum[:4]) + "-" + strings.ToLower(rand.Text()[:10]) + socketSuffix
	path := filepath.Join(dir, name)
	if len(path) > longestPath {
		return "", fmt.Errorf("the path of socket %s is longer than the %d bytes an address holds: choose a shorter kubelet folder", path, longestPath)
	}
	return path, nil
}

// removeSockets removes what an earlier agent of this node left behind.
func removeSockets(kubeletDir string) error {
	var errs []error
	for _, dir := range []string{pluginsDir, devicesDir} {
		paths, err := filepath.Glob(filepath.Join(kubeletDir, dir, socketPrefix+"*"+socketSuffix))
		errs = append(errs, err)
		for _, path := range paths {
			info, err := os.Lstat(path)
			if err != nil || info.Mode()&fs.ModeSocket == 0 {
				continue
			}
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
