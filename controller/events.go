package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating"
)

// maxNote is the longest note of an Event that the API server accepts.
const maxNote = 1024

// Actions and reasons of Events, in addition to the reasons of conditions.
const (
	actionApply       = "Apply"
	actionReplace     = "Replace"
	reasonPodReplaced = "PodReplaced"
)

// eventRecorder emits an Event for each change that a person should notice.
type eventRecorder struct {
	recorder events.EventRecorder
}

// conditionsChanged emits an Event, and logs a line, for each condition that became
// False, changed its message while False, or recovered. Condition Ready is left out:
// objects that stay unready have Events of their own. Retries that change nothing are
// neither logged nor emitted.
func (r eventRecorder) conditionsChanged(ctx context.Context, about runtime.Object, before, now []metav1.Condition) {
	for i := range now {
		condition := &now[i]
		if condition.Type == v0.ConditionReady {
			continue
		}
		old := meta.FindStatusCondition(before, condition.Type)
		bad, wasBad := condition.Status == metav1.ConditionFalse, old != nil && old.Status == metav1.ConditionFalse
		switch {
		case bad && wasBad && old.Reason == condition.Reason &&
			(old.Message == condition.Message || condition.Reason == v0.ReasonRolloutWaiting): // how far it has come
		case bad && condition.Reason == v0.ReasonRolloutWaiting:
			r.emit(ctx, about, corev1.EventTypeNormal, condition)
		case bad:
			r.emit(ctx, about, corev1.EventTypeWarning, condition)
		case wasBad:
			r.emit(ctx, about, corev1.EventTypeNormal, condition)
		}
	}
}

func (r eventRecorder) emit(ctx context.Context, about runtime.Object, kind string, condition *metav1.Condition) {
	note := text.Truncate(condition.Message, maxNote)
	log.FromContext(ctx).Info("A condition has changed",
		"condition", condition.Type, "status", condition.Status, "reason", condition.Reason, "message", note)
	r.recorder.Eventf(about, nil, kind, condition.Reason, actionApply, "%s", note)
}

// podReplaced emits an Event for a terminated Pod, which cannot be inspected once
// it is replaced.
func (r eventRecorder) podReplaced(parent ownership.Parent, pod inventory.Ref, why string) {
	identity := metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name, UID: parent.UID}
	var about runtime.Object = &v0.Configuration{ObjectMeta: identity}
	if parent.Level == templating.InstanceLevel {
		about = &v0.Instance{ObjectMeta: identity}
	}
	note := pod.String() + " is replaced: " + why
	r.recorder.Eventf(about, nil, corev1.EventTypeWarning, reasonPodReplaced, actionReplace, "%s", text.Truncate(note, maxNote))
}
