package kubeversion

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// The minor releases of Kubernetes 1, see docs/kubernetes-versions.md.
const (
	// minimum is the oldest with which Akri can be installed: the schemas of its CRDs
	// use optionalOldSelf, and its policies are ValidatingAdmissionPolicies that read the
	// node from an agent's token. Older API servers reject the former or ignore the latter.
	minimum = 30
	// oldestTested and newestTested bound those that Akri has been tested with.
	oldestTested = 34
	newestTested = 37
)

// page is where users can read about versions.
const page = "docs/kubernetes-versions.md"

// TooOldError reports that Akri does not run on a version of the API server.
type TooOldError struct{ Version string }

func (e *TooOldError) Error() string {
	return fmt.Sprintf("the API server has Kubernetes %s, which lacks features of CRDs and admission policies that Akri relies on: "+
		"upgrade the control plane to v1.%d or later", e.Version, minimum)
}

// Check returns a *TooOldError if Akri does not run on an API server of this version.
func Check(server string) error {
	if minor, ok := minorOf(server); ok && minor < minimum {
		return &TooOldError{Version: server}
	}
	return nil
}

// Lacking returns what is to be said about an API server of this version, as a sentence
// without its period, or "".
func Lacking(server string) string {
	minor, ok := minorOf(server)
	switch {
	case !ok:
	case minor < minimum:
		return (&TooOldError{Version: server}).Error()
	case minor < oldestTested:
		return fmt.Sprintf("Kubernetes %s is older than v1.%d, the oldest that Akri has been tested with", server, oldestTested)
	case minor > newestTested:
		return fmt.Sprintf("Kubernetes %s is newer than v1.%d, the newest that Akri has been tested with", server, newestTested)
	}
	return ""
}

// minorOf returns the minor release of a version of Kubernetes 1.
func minorOf(text string) (minor uint, ok bool) {
	parsed, err := version.ParseGeneric(text)
	if err != nil || parsed.Major() != 1 {
		return 0, false
	}
	return parsed.Minor(), true
}
