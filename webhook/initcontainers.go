package webhook

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
)

// checkInitContainers warns of init containers that request devices and are not
// sidecars. The kubelet's list of devices does not show them: a Pod with such a
// container is killed if its kubelet restarts and the agent responds a second too
// late (kubelet 1.37), and its slots are freed only when the whole Pod has terminated.
func checkInitContainers(configuration *v0.Configuration, candidates []*candidate) []Finding {
	var findings []Finding
	for _, tmpl := range candidates {
		var source any = tmpl.source
		if tmpl.source == nil {
			source = legacySpec(configuration, tmpl.place)
		}
		for _, path := range initContainersWithDevices(source) {
			findings = append(findings, Finding{Warn, finding.Mistake{
				Path: tmpl.place + path,
				Cause: "an init container that requests a device keeps it until the Pod ends, " +
					"and the Pod may be killed when the kubelet restarts",
				Hint: "request the device in the containers only, or make it a sidecar with restartPolicy: Always",
			}})
		}
	}
	return findings
}

// legacySpec returns the legacy field at a place, or nil.
func legacySpec(configuration *v0.Configuration, place string) any {
	if configuration.Spec.BrokerSpec == nil {
		return nil
	}
	var raw *runtime.RawExtension
	switch place {
	case "spec.brokerSpec.brokerPodSpec":
		raw = configuration.Spec.BrokerSpec.BrokerPodSpec
	case "spec.brokerSpec.brokerJobSpec":
		raw = configuration.Spec.BrokerSpec.BrokerJobSpec
	}
	var spec any
	if raw == nil || json.Unmarshal(raw.Raw, &spec) != nil {
		return nil
	}
	return spec
}

// initContainersWithDevices returns the paths of the init containers within a value
// that request devices and are not sidecars, in order.
func initContainersWithDevices(value any) []string {
	var paths []string
	switch node := value.(type) {
	case map[string]any:
		for key, child := range node {
			if list, ok := child.([]any); ok && key == "initContainers" {
				for i, container := range list {
					if requestsDevice(container) {
						paths = append(paths, fmt.Sprintf(".initContainers[%d]", i))
					}
				}
				continue
			}
			for _, path := range initContainersWithDevices(child) {
				paths = append(paths, "."+key+path)
			}
		}
	case []any:
		for i, child := range node {
			for _, path := range initContainersWithDevices(child) {
				paths = append(paths, fmt.Sprintf("[%d]", i)+path)
			}
		}
	}
	slices.Sort(paths)
	return paths
}

// requestsDevice reports whether an init container that is not a sidecar requests one
// of Akri's resources. The resource's name may be an expression.
func requestsDevice(value any) bool {
	container, _ := value.(map[string]any)
	resources, _ := container["resources"].(map[string]any)
	if container["restartPolicy"] == "Always" {
		return false
	}
	return requests(resources)
}
