package advice

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

// EndOldPodFirst is the remedy for a Deployment whose update waits for ever. It can be applied
// to one that exists, unlike type: Recreate, which the API server refuses because the existing
// object has the defaults of rollingUpdate. StatefulSets and DaemonSets end the old Pod first anyway, without maxSurge.
const EndOldPodFirst = `end the old Pod first, with two lines in the spec of the Deployment, "strategy:" and ` +
	`"  rollingUpdate: {maxSurge: 0, maxUnavailable: 1}"`

// ofUpdate warns of an update that cannot make progress: no old Pod may end before a new one
// is ready, and there is no slot for that.
func ofUpdate(source map[string]any, content map[string]any, values templating.Values) templating.Diagnostics {
	var object appsv1.Deployment
	if runtime.DefaultUnstructuredConverter.FromUnstructured(content, &object) != nil {
		return nil // which others report
	}
	pods, missing := 1, intstr.FromString("25%")
	if object.Spec.Replicas != nil {
		pods = int(*object.Spec.Replicas)
	}
	rolling := cmp.Or(object.Spec.Strategy.RollingUpdate, &appsv1.RollingUpdateDeployment{})
	surge, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(rolling.MaxSurge, missing), pods, true)
	unavailable, wrong := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(rolling.MaxUnavailable, missing), pods, false)
	recreates := object.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
	if err != nil || wrong != nil || recreates || surge == 0 || unavailable > 0 {
		return nil
	}
	spec, _ := source["spec"].(map[string]any)
	replicas, _ := spec["replicas"].(string)
	all := v0.ResourceName(values.Configuration)
	for resource, each := range Requested(&object.Spec.Template.Spec) {
		slots := values.Capacity
		ofDevice := func(d templating.Instance) bool { return resource == v0.ResourceName(d.Name) }
		switch {
		case ofDevice(values.Instance), slices.ContainsFunc(values.Instances, ofDevice):
		case resource == all && strings.Contains(replicas, "INSTANCES"): // as wrong with another number of devices
			slots *= int64(len(values.Instances))
		default:
			continue // nobody knows how many there will be
		}
		if int64(pods+1)*each > slots {
			return templating.Diagnostics{warning(templating.Keys("spec", "strategy"),
				fmt.Sprintf("an update waits for ever, because it starts a new Pod before it ends an old one, and there is no slot "+
					"for the new one (Pods: %d, slots for each: %d, slots in all: %d)", pods, each, slots), EndOldPodFirst)}
		}
	}
	return nil
}
