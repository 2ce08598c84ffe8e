package readiness

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The messages of kstatus for the stages of a rollout only count; those for what needs
// attention do not.
func TestCounts(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, generation: 2}\nspec: {replicas: 3}\n"
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
	for name, tc := range map[string]struct {
		object string
		want   bool
	}{
		"not seen by its controller": {deployment, true},
		"seen in an older version":   {deployment + "status: {observedGeneration: 1}", true},
		"too few replicas":           {deployment + "status: {observedGeneration: 2}", true},
		"too few available": {deployment +
			"status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, readyReplicas: 1, availableReplicas: 1}", true},
		"too many replicas": {deployment +
			"status: {observedGeneration: 2, replicas: 4, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3}", true},
		"no progress": {deployment +
			"status: {observedGeneration: 2, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}", false},
		"crash loop": {pod + "status: {phase: Running, containerStatuses: " +
			"[{name: c, state: {waiting: {reason: CrashLoopBackOff}}}]}", false},
		"failed": {pod + "status: {phase: Failed, message: '1/2'}", false},
		"no node for it": {pod + "status: {phase: Pending, conditions: " +
			"[{type: PodScheduled, status: 'False', reason: Unschedulable}]}", false},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := yaml.YAMLToJSON([]byte(tc.object))
			if err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(text); err != nil {
				t.Fatal(err)
			}
			ready, reason := Check(object)
			if ready || Counts(reason) != tc.want {
				t.Errorf("ready %t, reason %q: counts %t, want %t", ready, reason, Counts(reason), tc.want)
			}
		})
	}
}
