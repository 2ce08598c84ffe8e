package build

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// Environment variables that select versions of Kubernetes. The Makefile sets them from
// KUBERNETES and KUBELET.
const (
	KubernetesVariable = "AKRI_KUBERNETES"
	KubeletVariable    = "AKRI_KUBELET"
)

const (
	// minMinor is the oldest minor release of Kubernetes 1 that can be built: with older
	// ones, package main of module kubebox/kubernetes and the flags of package cluster
	// have not been tried.
	minMinor = 34
	// maxSkew is how many minor releases a kubelet may be older than the API server, by
	// Kubernetes' version skew policy. It may not be newer.
	maxSkew = 3
)

// Versions selects the versions of Kubernetes. The zero value is the pinned one, which
// the go.mod of module kubebox/kubernetes names. Others are built from a go.mod that is
// generated; see gomod.go.
type Versions struct {
	Kubernetes string // of the control plane; empty: pinned
	Kubelet    string // of kubelet and kube-proxy; empty: that of the control plane
}

// Requested returns the versions that the environment selects.
func Requested() Versions {
	return Versions{Kubernetes: os.Getenv(KubernetesVariable), Kubelet: os.Getenv(KubeletVariable)}
}

// ControlPlane returns the version of the control plane.
func (v Versions) ControlPlane() string { return cmp.Or(v.Kubernetes, kubernetesVersion) }

// Nodes returns the version of the kubelets.
func (v Versions) Nodes() string { return cmp.Or(v.Kubelet, v.ControlPlane()) }

// dir returns the name of the directory with the executables, in bin/.
func (v Versions) dir() string {
	name := "k8s"
	if v.Kubernetes != "" {
		name += "-" + v.Kubernetes
	}
	if v.Kubelet != "" {
		name += "-kubelet-" + v.Kubelet
	}
	return name
}

// makeTarget returns the make command that builds the versions.
func (v Versions) makeTarget() string {
	command := "make kubernetes"
	if v.Kubernetes != "" {
		command += " KUBERNETES=" + v.Kubernetes
	}
	if v.Kubelet != "" {
		command += " KUBELET=" + v.Kubelet
	}
	return command
}

// validate rejects versions that cannot be built, or that do not work together.
func (v Versions) validate() error {
	control, err := minorOf(v.ControlPlane())
	if err != nil {
		return fmt.Errorf("KUBERNETES: %w", err)
	}
	nodes, err := minorOf(v.Nodes())
	if err != nil {
		return fmt.Errorf("KUBELET: %w", err)
	}
	switch {
	case nodes > control:
		return fmt.Errorf("KUBELET: %s is newer than the API server, %s: choose the same or an older version", v.Nodes(), v.ControlPlane())
	case control-nodes > maxSkew:
		return fmt.Errorf("KUBELET: %s is more than %d minor releases older than the API server, %s: choose a newer version",
			v.Nodes(), maxSkew, v.ControlPlane())
	}
	return nil
}

var versionPattern = regexp.MustCompile(`^v1\.([0-9]+)\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?$`)

// minorOf returns the minor release of a version that can be built.
func minorOf(version string) (int, error) {
	match := versionPattern.FindStringSubmatch(version)
	if match == nil {
		return 0, fmt.Errorf("%q: want a complete version, such as v1.%d.0: go list -m -versions k8s.io/kubernetes shows some", version, minMinor)
	}
	minor, err := strconv.Atoi(match[1])
	if err != nil || minor < minMinor {
		return 0, fmt.Errorf("%s: the oldest version that can be built is v1.%d.0", version, minMinor)
	}
	return minor, nil
}

// link links the names to the files of the same names in another directory.
func (b *builder) link(from string, names ...string) error {
	if from == b.dir {
		return nil
	}
	for _, name := range names {
		if err := os.MkdirAll(filepath.Dir(b.result(name)), 0o755); err != nil {
			return err
		}
		target, err := filepath.Rel(filepath.Dir(b.result(name)), filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := replaceLink(target, b.result(name)); err != nil {
			return err
		}
	}
	return nil
}

// replaceLink makes path a symbolic link, whatever it was before.
func replaceLink(target, path string) error {
	if current, err := os.Readlink(path); err == nil && current == target {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Symlink(target, path)
}
