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
	// podsAPI is the first whose kubelet serves the Pods API by default (KEP-4188).
	podsAPI = 37
)

// Page is where users can read about versions.
const Page = "docs/kubernetes-versions.md"

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

// Lacking returns what Akri does without in a cluster whose API server and kubelets have
// these versions, with the consequences. Each is a sentence without its period.
func Lacking(server string, kubelets ...string) []string {
	var all []string
	minor, ok := minorOf(server)
	switch {
	case !ok:
	case minor < minimum:
		all = append(all, (&TooOldError{Version: server}).Error())
	case minor < oldestTested:
		all = append(all, fmt.Sprintf("Kubernetes %s is older than v1.%d, the oldest that Akri has been tested with", server, oldestTested))
	case minor > newestTested:
		all = append(all, fmt.Sprintf("Kubernetes %s is newer than v1.%d, the newest that Akri has been tested with", server, newestTested))
	}
	without, oldest := 0, ""
	for _, kubelet := range kubelets {
		if minor, ok := minorOf(kubelet); ok && minor < podsAPI {
			without, oldest = without+1, kubelet
		}
	}
	switch {
	case without == 1:
		all = append(all, fmt.Sprintf("a kubelet (%s) has no Pods API: %s", oldest, WithoutPodsAPI))
	case without > 1:
		all = append(all, fmt.Sprintf("%d kubelets (such as %s) have no Pods API: %s", without, oldest, WithoutPodsAPI))
	}
	return all
}

// WithoutPodsAPI is the consequence of a kubelet without the Pods API.
const WithoutPodsAPI = "agents watch the Pods of their node in the API server instead, need permission for that, " +
	"and free slots about a second later"

// minorOf returns the minor release of a version of Kubernetes 1.
func minorOf(text string) (minor uint, ok bool) {
	parsed, err := version.ParseGeneric(text)
	if err != nil || parsed.Major() != 1 {
		return 0, false
	}
	return parsed.Minor(), true
}
