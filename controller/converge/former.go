package converge

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/templating"
)

// hadJob reports whether an inventory has a Job.
func hadJob(recorded []v0.ResourceStatus) bool {
	return slices.ContainsFunc(recorded, func(entry v0.ResourceStatus) bool { return isJob(entry.Group, entry.Kind) && entry.UID != "" })
}

func isJob(group, kind string) bool { return group == "batch" && kind == "Job" }

// former completes the entry of a Job of brokerSpec if the original Akri has created one
// for the Instance, under another name. It reports whether it has. The work is then done,
// or being done: to create the Job would do it again. An Instance that has had a Job of
// its own gets the next one.
func (e *execution) former(ctx context.Context, step plan.Step, entry *v0.ResourceStatus) (bool, error) {
	want := step.Desired
	content := unstructured.Unstructured{Object: want.Content}
	if step.Action != plan.Create || !want.Once || e.hadJob || !isJob(step.Ref.Group, step.Ref.Kind) ||
		e.parent.Level != templating.InstanceLevel || content.GetLabels()[apply.LabelOfAkri] != v0.Domain {
		return false, nil
	}
	uid, err := e.Clients.Own().FormerJob(ctx, want.Resource, e.parent) // a ServiceAccount may not list Jobs
	if err != nil || uid == "" {
		return false, err
	}
	log.FromContext(ctx).Info("A Job of the original Akri has done the work", "child", step.Ref.String(), "uid", uid)
	entry.UID, entry.Hash, entry.Ready = string(uid), want.Hash, true
	return true, nil
}
