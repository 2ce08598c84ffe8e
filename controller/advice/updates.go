package advice

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
)

// The kinds of Kubernetes that can start a new Pod before they end the old one. StatefulSets
// cannot.
const (
	Deployment = "Deployment"
	DaemonSet  = "DaemonSet"
)

// EndOldPodFirst returns the remedy for an object of these kinds whose update waits for
// ever. It can be applied to an object that exists, unlike type: Recreate, which the API
// server refuses beside the defaults of rollingUpdate.
func EndOldPodFirst(kind string) string {
	return fmt.Sprintf(`end the old Pod first, with two lines in the spec of the %s, "%s:" and `+
		`"  rollingUpdate: {maxSurge: 0, maxUnavailable: 1}"`, kind, strategyOf[kind])
}

// strategyOf is the field with the strategy of updates, by kind.
var strategyOf = map[string]string{Deployment: "strategy", DaemonSet: "updateStrategy"}

// strategy is how an object of these kinds is updated.
type strategy struct {
	Type          string `json:"type"`
	RollingUpdate struct {
		MaxSurge       *intstr.IntOrString `json:"maxSurge"`
		MaxUnavailable *intstr.IntOrString `json:"maxUnavailable"`
	} `json:"rollingUpdate"`
}

// ofUpdate warns of an update that cannot make progress: no old Pod may end before a new one
// is ready, and there is no slot for that.
func ofUpdate(kind string, content map[string]any, slots map[string]int64) []finding.Mistake {
	var object struct {
		Spec struct {
			Replicas       *int                   `json:"replicas"`
			Strategy       strategy               `json:"strategy"`
			UpdateStrategy strategy               `json:"updateStrategy"`
			Template       corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(content, &object) != nil {
		return nil // which others report
	}
	pods, update, missing := 1, object.Spec.UpdateStrategy, intstr.FromInt32(0)
	if kind == Deployment {
		update, missing = object.Spec.Strategy, intstr.FromString("25%")
		if object.Spec.Replicas != nil {
			pods = *object.Spec.Replicas
		}
	}
	rolling := update.RollingUpdate
	surge, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(rolling.MaxSurge, missing), pods, true)
	unavailable, wrong := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(rolling.MaxUnavailable, missing), pods, false)
	rolls := update.Type == "" || update.Type == "RollingUpdate"
	if err != nil || wrong != nil || !rolls || surge == 0 || unavailable > 0 {
		return nil
	}
	for resource, each := range Requested(&object.Spec.Template.Spec) {
		if all, known := slots[resource]; known && int64(pods+1)*each > all {
			return []finding.Mistake{{
				Path: "spec." + strategyOf[kind],
				Cause: fmt.Sprintf("an update waits for ever, because it starts a new Pod before it ends an old one, and there is no slot "+
					"for the new one (Pods: %d, slots for each: %d, slots in all: %d)", pods, each, all),
				Hint: EndOldPodFirst(kind),
			}}
		}
	}
	return nil
}

// slotsOf returns how many slots there are, by resource. How many devices there will be is
// unknown, and with it the slots of a Configuration's resource, unless the template has
// replicas that follow their number: then it is as wrong for the devices of the values as
// for others.
func slotsOf(source map[string]any, level templating.Level, values templating.Values) map[string]int64 {
	if level == templating.InstanceLevel {
		return map[string]int64{v0.ResourceName(values.Instance.Name): values.Capacity}
	}
	slots := map[string]int64{}
	for _, device := range values.Instances {
		slots[v0.ResourceName(device.Name)] = values.Capacity
	}
	spec, _ := source["spec"].(map[string]any)
	if replicas, _ := spec["replicas"].(string); strings.Contains(replicas, "INSTANCES") {
		slots[v0.ResourceName(values.Configuration)] = values.Capacity * int64(len(values.Instances))
	}
	return slots
}
