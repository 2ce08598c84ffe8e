package advice

import (
	"cmp"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
)

// Of returns the warnings about an object that was rendered with some values from a
// template as its author wrote it; nil for one of Akri's old fields. Their paths begin below
// the object, and are empty for the object as a whole.
func Of(source map[string]any, object templating.Object, values templating.Values) []finding.Mistake {
	apiVersion, _ := object.Content["apiVersion"].(string)
	name, _ := object.Content["kind"].(string)
	kind := schema.FromAPIVersionAndKind(apiVersion, name).GroupKind()
	mistakes := ofPods(source, kind, object.Content)
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: Deployment}:
		return append(mistakes, ofDeployment(object.Content, slotsOf(source, object.Origin.Level, values))...)
	case schema.GroupKind{Group: "apps", Kind: DaemonSet}:
		return append(mistakes, ofDaemonSet(object.Content, slotsOf(source, object.Origin.Level, values))...)
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return append(mistakes, ofJob(source, object)...)
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return append(mistakes, ofClaim(source, object.Origin.Level)...)
	}
	return mistakes
}

// decided reports whether a template has a directive, whatever its value.
func decided(source map[string]any, directive string) bool {
	metadata, _ := source["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	_, found := annotations[directive]
	return found
}

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
	field := "strategy"
	if kind == DaemonSet {
		field = "updateStrategy"
	}
	return fmt.Sprintf(`end the old Pod first, with two lines in the spec of the %s, "%s:" and `+
		`"  rollingUpdate: {maxSurge: 0, maxUnavailable: 1}"`, kind, field)
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

// ofDeployment warns of an update that cannot make progress: no old Pod may end before a new
// one is ready, and there is no slot for that.
func ofDeployment(content map[string]any, slots map[string]int64) []finding.Mistake {
	var deployment appsv1.Deployment
	if runtime.DefaultUnstructuredConverter.FromUnstructured(content, &deployment) != nil {
		return nil // which others report
	}
	spec := &deployment.Spec
	if spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return nil
	}
	replicas, update := 1, cmp.Or(spec.Strategy.RollingUpdate, &appsv1.RollingUpdateDeployment{})
	if spec.Replicas != nil {
		replicas = int(*spec.Replicas)
	}
	quarter := intstr.FromString("25%") // the default of both
	surge, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(update.MaxSurge, quarter), replicas, true)
	if err != nil {
		return nil
	}
	unavailable, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(update.MaxUnavailable, quarter), replicas, false)
	if err != nil || surge == 0 || unavailable > 0 {
		return nil
	}
	return waits("spec.strategy", Deployment, int64(replicas), &spec.Template.Spec, slots)
}

// ofDaemonSet warns of an update that starts the new Pod of a node first.
func ofDaemonSet(content map[string]any, slots map[string]int64) []finding.Mistake {
	var set appsv1.DaemonSet
	if runtime.DefaultUnstructuredConverter.FromUnstructured(content, &set) != nil {
		return nil
	}
	update := set.Spec.UpdateStrategy.RollingUpdate
	if update == nil {
		return nil
	}
	// Percents are of the number of nodes, and are rounded up.
	surge, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(update.MaxSurge, intstr.FromInt32(0)), 1, true)
	if err != nil || surge == 0 {
		return nil
	}
	return waits("spec.updateStrategy", DaemonSet, 1, &set.Spec.Template.Spec, slots)
}

// waits warns if Pods that run leave no slots for a further one.
func waits(path, kind string, pods int64, pod *corev1.PodSpec, slots map[string]int64) []finding.Mistake {
	if pods == 0 {
		return nil
	}
	for resource, each := range Requested(pod) {
		if all, known := slots[resource]; known && each > 0 && (pods+1)*each > all {
			return []finding.Mistake{{
				Path: path,
				Cause: fmt.Sprintf("an update waits for ever, because it starts a new Pod before it ends an old one, and there is no slot "+
					"for the new one (Pods: %d, slots for each: %d, slots in all: %d)", pods, each, all),
				Hint: EndOldPodFirst(kind),
			}}
		}
	}
	return nil
}

// ofJob warns of a Job that Kubernetes deletes when it has finished: the controller creates
// it again, unless the template says what is intended.
func ofJob(source map[string]any, object templating.Object) []finding.Mistake {
	const once = v0.Domain + "/once"
	spec, _ := object.Content["spec"].(map[string]any)
	if spec["ttlSecondsAfterFinished"] == nil || object.Directives.Once || decided(source, once) {
		return nil
	}
	return []finding.Mistake{{
		Path:  "spec.ttlSecondsAfterFinished",
		Cause: "the Job is deleted when it has finished, and then created again, so it runs again and again",
		Hint:  "annotate it " + once + `: "true" to run it once per device, or "false" if that is intended`,
	}}
}

// ofClaim warns of a PersistentVolumeClaim that is deleted with the devices, and its data
// with it, unless the template says what is intended.
func ofClaim(source map[string]any, level templating.Level) []finding.Mistake {
	const policy = v0.Domain + "/deletion-policy"
	if decided(source, policy) {
		return nil
	}
	when := "its device disappears"
	if level == templating.ConfigurationLevel {
		when = "the last device disappears, even for a moment"
	}
	return []finding.Mistake{{
		Cause: "the PersistentVolumeClaim is deleted when " + when + ", and its data with it",
		Hint:  "annotate it " + policy + ": orphan to keep it, or delete if that is intended",
	}}
}
