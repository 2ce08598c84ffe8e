package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

const agents = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: akri-agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: agent}]}
`

// TestCheck makes the checks on an API server where the test is the agent. All succeed,
// and nothing is left.
func TestCheck(t *testing.T) {
	w := apitest.NewWorld(t)
	w.Apply(agents)
	daemonSet := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet"}}
	w.Read("akri-agent", daemonSet)
	daemonSet.Object["status"] = map[string]any{
		"observedGeneration": int64(1), "desiredNumberScheduled": int64(2), "numberReady": int64(2),
		"currentNumberScheduled": int64(2), "numberMisscheduled": int64(0),
	}
	if err := w.Client.Status().Update(t.Context(), daemonSet); err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		publish(ctx, w)
	}()
	var out bytes.Buffer
	check := checkCommand{namespace: w.Namespace, agents: true, device: true, timeout: time.Minute, out: &out}
	err := check.serve(t.Context(), apitest.Start(t))
	stop()
	<-done

	if err != nil {
		t.Errorf("%v:\n%s", err, &out)
	}
	for _, line := range []string{
		"ok    kinds: ", "skip  webhook: ", "ok    agents: 2 of 2 are ready", "ok    device: a device of the handler debugEcho appeared after ",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no line %q in\n%s", line, &out)
		}
	}
	left := &v0.ConfigurationList{}
	if err := w.Client.List(t.Context(), left, client.InNamespace(w.Namespace)); err != nil || len(left.Items) > 0 {
		t.Errorf("left: %v, %v", left.Items, err)
	}
}

// publish is an agent: the Configuration of the check has a device as long as it exists.
func publish(ctx context.Context, w *apitest.World) {
	instance := &v0.Instance{
		ObjectMeta: w.Meta(checkConfiguration + "-0a1b2c"),
		Spec: v0.InstanceSpec{
			ConfigurationName: checkConfiguration, CDIName: v0.CDIName(checkConfiguration, "0"), Capacity: 1, Nodes: []string{"node-a"},
		},
	}
	for ctx.Err() == nil {
		configuration := &v0.Configuration{}
		err := w.Client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: checkConfiguration}, configuration)
		if err == nil {
			_ = w.Client.Create(ctx, instance.DeepCopy())
		} else if ctx.Err() == nil {
			_ = w.Client.Delete(ctx, instance.DeepCopy())
		}
	}
}

// TestCheckFails makes the checks where neither the webhook nor an agent runs.
func TestCheckFails(t *testing.T) {
	w := apitest.NewWorld(t)
	w.Apply(agents)
	var out bytes.Buffer
	check := checkCommand{namespace: w.Namespace, webhook: true, agents: true, device: true, timeout: 2 * time.Second, out: &out}
	if err := check.serve(t.Context(), apitest.Start(t)); err == nil || err.Error() != "3 checks failed" {
		t.Errorf("%v:\n%s", err, &out)
	}
	for _, line := range []string{
		"FAIL  webhook: an invalid Configuration was accepted", "FAIL  agents: the DaemonSet akri-agent has not been processed yet",
		"FAIL  device: no agent has published the device",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no line %q in\n%s", line, &out)
		}
	}
}
