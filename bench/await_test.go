package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"akri.sh/akri/bench/stub"
)

// at returns a time of the log.
func at(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }

// expectTimeout calls wait with a clock that jumps, and compares the error and the time
// until it is returned.
func expectTimeout(t *testing.T, after time.Duration, want string, wait func(context.Context) error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := wait(t.Context())
		if took := time.Since(began).Truncate(time.Second); took != after {
			t.Errorf("took %v, want %v", took, after)
		}
		if got := fmt.Sprint(err); got != want {
			t.Errorf("got the error %q, want %q", got, want)
		}
	})
}

// settledLog returns the log of two Instances whose objects and statuses are written,
// and of requests that must not count.
func settledLog() []auditLine {
	write := func(verb, resource string, device, code, began, done int) auditLine {
		return auditLine{
			Verb: verb, Resource: resource, Namespace: "bench-1", Name: deviceName(device), Code: code, Began: at(began), Done: at(done),
		}
	}
	lines := []auditLine{
		write("create", "instances", 1, 201, 5, 12), write("create", "instances", 0, 201, 0, 10), write("get", "instances", 0, 200, 0, 1),
		write("patch", "services", 0, 409, 12, 900), write("patch", "deployments", 0, 200, 12, 900), // failed, and an update
		{Resource: "configmaps", Namespace: "bench-1", Name: "kube-root-ca.crt", Code: 201, Began: at(0), Done: at(900)},
		{Resource: "configmaps", Namespace: "bench-2", Name: deviceName(0), Code: 201, Began: at(0), Done: at(900)},
	}
	for device := range 2 {
		for _, child := range children {
			lines = append(lines, write("patch", child.Resource, device, 201, 20, 30))
		}
		lines = append(lines, write("patch", "instances/status", device, 200, 40, 45+15*device))
	}
	return lines
}

func TestAwaitSettled(t *testing.T) {
	b := &bench{log: &auditLog{requests: settledLog()}}
	got, err := b.awaitSettled(t.Context(), 0, "bench-1", 2)
	// The four workers had 40 ms each, and were served for 6 * 10 + 5 + 20 ms.
	want := settled{lastObject: 20 * time.Millisecond, lastStatus: 50 * time.Millisecond, own: 1 - 85./160}
	got.own, want.own = math.Round(1e6*got.own), math.Round(1e6*want.own)
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	const missing = "only 6 of 9 objects and 2 of 3 statuses exist: context deadline exceeded"
	expectTimeout(t, 10*time.Minute, missing, func(ctx context.Context) error {
		_, err := b.awaitSettled(ctx, 0, "bench-1", 3)
		return err
	})
}

// A rollout is over once all ConfigMaps of its namespace have been applied, and a while
// has passed since the last write.
func TestAwaitChanges(t *testing.T) {
	patch := func(namespace string, device, code int) auditLine {
		return auditLine{
			Agent: controllerAgent, Verb: "patch", Resource: "configmaps", Namespace: namespace, Name: deviceName(device), Code: code,
		}
	}
	lines := []auditLine{
		patch("bench-1", 0, 200), patch("bench-1", 1, 409), patch("bench-2", 1, 200),
		{Agent: controllerAgent, Verb: "get", Resource: "configmaps", Namespace: "bench-1", Name: deviceName(1), Code: 200},
	}
	expectTimeout(t, 10*time.Minute, "only 1 of 2 ConfigMaps are applied: context deadline exceeded", func(ctx context.Context) error {
		b := &bench{log: &auditLog{requests: lines}}
		_, err := b.awaitChanges(ctx, 0, "bench-1", 2, time.Second)
		return err
	})
	synctest.Test(t, func(t *testing.T) {
		b := &bench{log: &auditLog{requests: append(lines, patch("bench-1", 1, 200), patch("bench-1", 1, 200))}}
		requests, err := b.awaitChanges(t.Context(), 0, "bench-1", 2, time.Second)
		if err != nil || len(requests) != 6 {
			t.Errorf("got %d requests, %v, want 6", len(requests), err)
		}
	})
}

func TestAwaitDeparture(t *testing.T) {
	remove := func(resource string, device, code, done int) auditLine {
		return auditLine{Verb: "delete", Resource: resource, Namespace: "bench-1", Name: deviceName(device), Code: code, Done: at(done)}
	}
	lines := []auditLine{
		remove("instances", 0, 200, 15), remove("instances", 1, 200, 10), remove("pods", 0, 200, 900), remove("services", 0, 404, 900),
		{Verb: "delete", Resource: "services", Namespace: "bench-2", Name: deviceName(0), Code: 200, Done: at(900)},
		{Verb: "delete", Resource: "services", Namespace: "bench-1", Name: "other", Code: 200, Done: at(900)},
		{Verb: "get", Resource: "services", Namespace: "bench-1", Name: deviceName(0), Code: 200, Done: at(900)},
	}
	for device := range 2 {
		for i, child := range children {
			lines = append(lines, remove(child.Resource, device, 200, 20+10*i))
		}
	}
	b := &bench{log: &auditLog{requests: lines}}
	if took, err := b.awaitDeparture(t.Context(), 0, "bench-1", 2); err != nil || took != 30*time.Millisecond {
		t.Errorf("took %v, %v, want 30 ms", took, err)
	}
	expectTimeout(t, 5*time.Minute, "only 6 of 9 objects are deleted: context deadline exceeded", func(ctx context.Context) error {
		_, err := b.awaitDeparture(ctx, 0, "bench-1", 3)
		return err
	})
}

func TestRemoves(t *testing.T) {
	yes := auditLine{Verb: "delete", Agent: controllerAgent, Resource: "services", Namespace: "bench-1", Name: deviceName(0)}
	for name, c := range map[string]struct {
		change func(*auditLine)
		want   bool
	}{
		"by the controller":        {func(*auditLine) {}, true},
		"by the garbage collector": {func(r *auditLine) { r.Agent, r.Verb = controllerManager, "get" }, true},
		"by us":                    {func(r *auditLine) { r.Agent = "bench" }, false},
		"a patch":                  {func(r *auditLine) { r.Verb = "patch" }, false},
		"an Instance":              {func(r *auditLine) { r.Resource = "instances" }, false},
		"another namespace":        {func(r *auditLine) { r.Namespace = "bench-2" }, false},
		"another object":           {func(r *auditLine) { r.Name = "default" }, false},
	} {
		r := yes
		c.change(&r)
		if got := r.removes("bench-1"); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

func TestAwaitEvents(t *testing.T) {
	events := watch.NewFakeWithChanSize(4, false)
	events.Add(&unstructured.Unstructured{})
	events.Delete(&unstructured.Unstructured{})
	events.Add(&unstructured.Unstructured{})
	if err := awaitEvents(t.Context(), events, watch.Added, 2); err != nil {
		t.Error(err)
	}
	expectTimeout(t, time.Minute, "2 events ADDED are missing: context deadline exceeded", func(ctx context.Context) error {
		events := watch.NewFakeWithChanSize(2, false)
		events.Add(&unstructured.Unstructured{})
		events.Modify(&unstructured.Unstructured{})
		return awaitEvents(ctx, events, watch.Added, 3)
	})
	events.Stop()
	expectError(t, awaitEvents(t.Context(), events, watch.Added, 1), "the watch was closed")
}

func TestAwaitKubelets(t *testing.T) {
	a := &agentBench{kubelet: &stub.Kubelet{}}
	expectTimeout(t, 5*time.Minute, "the kubelet has 0 resources: context deadline exceeded", func(ctx context.Context) error {
		return a.awaitKubelet(ctx, func() bool { return false })
	})
	if err := a.awaitKubelet(t.Context(), func() bool { return true }); err != nil {
		t.Error(err)
	}
	nodes := []*stub.Kubelet{{}, {}}
	f := &fleet{shape: shape{Devices: 1}}
	expectTimeout(t, 30*time.Minute, "2 of 2 kubelets do not have all resources: context deadline exceeded", func(ctx context.Context) error {
		_, err := f.awaitOffered(ctx, nodes)
		return err
	})
	f.shape.Devices = 0
	if _, err := f.awaitOffered(t.Context(), nodes); err != nil || nodes[0] == nil {
		t.Errorf("got %v, nodes now %v", err, nodes)
	}
}

// metricsAnswer replaces the answer to each request for metrics.
func metricsAnswer(t *testing.T, answer func() string) {
	before := http.DefaultClient
	t.Cleanup(func() { http.DefaultClient = before })
	http.DefaultClient = &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		body := io.NopCloser(strings.NewReader(answer()))
		return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Request: r, Body: body, Header: http.Header{}}, nil
	})}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func TestAwaitRest(t *testing.T) {
	count, waiting := 3, 0
	metricsAnswer(t, func() string {
		return fmt.Sprintf("%s} %d\n%sname=\"instance\"} %d\n", reconciles, count, depth, waiting)
	})
	wait := func(ctx context.Context) error {
		p := &process{name: controllerAgent, metrics: "http://controller/metrics", exited: make(chan error, 1)}
		return p.awaitRest(ctx, 3)
	}
	expectTimeout(t, 2*time.Second, "<nil>", wait)
	waiting = 1
	expectTimeout(t, 3*time.Minute, "the controller did not become idle: context deadline exceeded "+
		`(map[controller_runtime_reconcile_total{controller="instance":3 workqueue_depth{:1])`, wait)
	count, waiting = 2, 0
	expectTimeout(t, 3*time.Minute, "the controller did not become idle: context deadline exceeded "+
		`(map[controller_runtime_reconcile_total{controller="instance":2 workqueue_depth{:0])`, wait)
	p := &process{name: controllerAgent, metrics: "http://controller/metrics", exited: make(chan error, 1)}
	p.exited <- errors.New("exit status 1")
	expectError(t, p.awaitRest(t.Context(), 3), "the controller exited: exit status 1")
}

// A program that ignores the signal is killed.
func TestStopKills(t *testing.T) {
	command := exec.Command("sleep", "600")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	expectTimeout(t, 20*time.Second, "akri-agent did not exit within 20s", func(context.Context) error {
		return (&process{name: "akri-agent", command: command, exited: make(chan error)}).stop(syscall.Signal(0))
	})
	command.Wait() // a process that was stopped by a signal always fails
	if status, ok := command.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("the program ended with %v, want SIGKILL", command.ProcessState)
	}
}

func TestInParallel(t *testing.T) {
	got := inParallel(3, func(worker int) error {
		if worker == 0 {
			return nil
		}
		return fmt.Errorf("worker %d", worker)
	})
	expectError(t, got, "worker 1")
}
