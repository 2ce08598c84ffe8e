package controller

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating"
)

// longestNote is the most that the API server takes as an Event's note.
const longestNote = 1024

// Actions and reasons of Events, beside the reasons of conditions.
const (
	actionApply      = "Apply"
	actionReplace    = "Replace"
	reasonBrokerEnds = "BrokerEnded"
)

// teller makes Events of what a person should notice: each piece of news once,
// when it is new.
type teller struct {
	recorder events.EventRecorder
}

// news tells of the conditions that have turned bad, or say something else than
// before, or are well again.
func (t teller) news(about runtime.Object, before, now []metav1.Condition) {
	for i := range now {
		condition := &now[i]
		if condition.Type == v0.ConditionReady {
			continue // what is not ready yet is no news; why it stays so is told by its own Events
		}
		old := meta.FindStatusCondition(before, condition.Type)
		bad, wasBad := condition.Status == metav1.ConditionFalse, old != nil && old.Status == metav1.ConditionFalse
		switch {
		case bad && wasBad && old.Reason == condition.Reason && old.Message == condition.Message:
		case bad && condition.Reason == v0.ReasonRolloutWaiting:
			t.tell(about, corev1.EventTypeNormal, condition.Reason, condition.Message)
		case bad:
			t.tell(about, corev1.EventTypeWarning, condition.Reason, condition.Message)
		case wasBad:
			t.tell(about, corev1.EventTypeNormal, condition.Reason, condition.Message)
		}
	}
}

// ended tells of a Pod that is replaced, since it cannot be looked at any more.
func (t teller) ended(parent ownership.Parent, what, why string) {
	var about runtime.Object
	identity := metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name, UID: parent.UID}
	if parent.Level == templating.InstanceLevel {
		about = &v0.Instance{ObjectMeta: identity}
	} else {
		about = &v0.Configuration{ObjectMeta: identity}
	}
	t.recorder.Eventf(about, nil, corev1.EventTypeWarning, reasonBrokerEnds, actionReplace, "%s", shortened(what+" is replaced: "+why))
}

func (t teller) tell(about runtime.Object, kind, reason, message string) {
	t.recorder.Eventf(about, nil, kind, reason, actionApply, "%s", shortened(message))
}

func shortened(note string) string {
	if len(note) <= longestNote {
		return note
	}
	return strings.ToValidUTF8(note[:longestNote-len("…")], "") + "…"
}
