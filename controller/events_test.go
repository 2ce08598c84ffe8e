package controller

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/finding"
)

// A problem is logged, and an Event emitted, when it appears, changes and goes: not at
// each retry, and never without a bound.
func TestProblemsAreTold(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	recorder := events.NewFakeRecorder(10)
	var before []metav1.Condition
	told := func(want int, problems ...*problem.Error) {
		t.Helper()
		lines = nil
		for range 3 { // the pass and its retries
			now := merge(before, instanceConditions(converge.Outcome{Problems: problems}))
			eventRecorder{recorder}.conditionsChanged(log.IntoContext(context.Background(), logger), &v0.Instance{}, before, now)
			before = now
		}
		emitted := len(recorder.Events)
		for range emitted {
			<-recorder.Events
		}
		if len(lines) != want || emitted != want {
			t.Errorf("%d lines and %d Events, want %d: %v", len(lines), emitted, want, lines)
		}
	}
	failed := func(cause string) *problem.Error {
		return &problem.Error{Mistake: finding.Mistake{Cause: cause}, Reason: v0.ReasonApplyFailed}
	}
	told(0)
	told(1, failed("first"))
	told(1, failed("second"))
	many := make([]*problem.Error, 1000)
	for i := range many {
		many[i] = failed(strings.Repeat("long ", 200))
	}
	told(1, many...)
	if len(lines[0]) > 2*maxNote {
		t.Errorf("a line of %d bytes", len(lines[0]))
	}
	told(1)
}
