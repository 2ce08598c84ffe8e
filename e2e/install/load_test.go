package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
)

// loaded is the namespace of the load.
const loaded = "load"

// loadConfiguration, formatted with a number, has a device that differs from one number to
// the next, and a Pod that uses it.
const loadConfiguration = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: load, namespace: load}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [device-%d]"}
  instanceBrokerResources:
  - apiVersion: v1
    kind: Pod
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: c, image: "akri.local/workload:1", resources: {limits: {"{{RESOURCE_NAME}}": "1"}}}
`

// claimingPod, formatted with a name and an Instance of the brokers, uses a slot that no
// broker uses.
const claimingPod = `
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %[1]q, "namespace": "load"},
 "spec": {"terminationGracePeriodSeconds": 1, "containers": [
   {"name": "c", "image": "akri.local/workload:1", "resources": {"limits": {"akri.sh/%[2]s": "1"}}}]}}
`

// load makes devices come and go, and Pods use slots, until it is stopped.
type load struct {
	w     *world
	stop  context.CancelFunc
	loops sync.WaitGroup

	mu      sync.Mutex
	devices int // that came, were used and went
	claims  int // slots that were claimed and released
	refused int // Pods that a kubelet did not admit, and that were created again
	errs    []error
}

// startLoad starts the load on the Instances of the brokers.
func (w *world) startLoad(b brokers) *load {
	w.t.Helper()
	w.kubectl("create", "namespace", loaded)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context())) // it outlives a step
	l := &load{w: w, stop: cancel}
	var instances []string
	for name := range b.slots {
		instances = append(instances, name)
	}
	l.loop(ctx, l.changeDevice)
	l.loop(ctx, func(ctx context.Context, i int) error { return l.claim(ctx, i, instances[i%len(instances)]) })
	return l
}

// loop calls do with increasing numbers until ctx is done or do returns an error.
func (l *load) loop(ctx context.Context, do func(ctx context.Context, i int) error) {
	l.loops.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if err := do(ctx, i); err != nil && ctx.Err() == nil {
				l.mu.Lock()
				l.errs = append(l.errs, err)
				l.mu.Unlock()
				return
			}
		}
	})
}

// changeDevice replaces the device by another, and waits until a Pod uses it and the device
// before the last is gone.
func (l *load) changeDevice(ctx context.Context, i int) error {
	path := "/apis/akri.sh/v0/namespaces/load/configurations/load?fieldManager=test&force=true"
	if err := l.w.send(ctx, http.MethodPatch, path, "application/apply-patch+yaml", fmt.Sprintf(loadConfiguration, i)); err != nil {
		return fmt.Errorf("device %d: %w", i, err)
	}
	complaint := poll(ctx, func() string {
		names, err := l.names(ctx)
		if err != nil {
			return err.Error()
		}
		name, found := names[fmt.Sprint("device-", i)]
		if len(names) > 2 || !found {
			return fmt.Sprintf("the devices are %v", names)
		}
		return l.ready(ctx, name)
	})
	if complaint != "" {
		return fmt.Errorf("device %d: %s", i, complaint)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.devices++
	return nil
}

// names returns the names of the Instances by device.
func (l *load) names(ctx context.Context) (map[string]string, error) {
	var instances struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ BrokerProperties map[string]string }
		}
	}
	names := map[string]string{}
	err := l.w.get(ctx, "/apis/akri.sh/v0/namespaces/load/instances", &instances)
	for _, item := range instances.Items {
		names[item.Spec.BrokerProperties["DEBUG_ECHO_DESCRIPTION"]] = item.Metadata.Name
	}
	return names, err
}

// claim runs a Pod that uses a slot of an Instance, and deletes it.
func (l *load) claim(ctx context.Context, i int, instance string) error {
	name := fmt.Sprint("claim-", i)
	manifest := fmt.Sprintf(claimingPod, name, instance)
	if err := l.w.send(ctx, http.MethodPost, "/api/v1/namespaces/load/pods", "application/json", manifest); err != nil {
		return fmt.Errorf("claim %d: %w", i, err)
	}
	refused := false
	complaint := poll(ctx, func() string {
		var pod object
		if err := l.w.get(ctx, "/api/v1/namespaces/load/pods/"+name, &pod); err != nil {
			return err.Error()
		}
		// Kubelets refuse Pods while the agent of their node is replaced.
		refused = pod.Status.Phase == "Failed"
		if refused || len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready {
			return ""
		}
		return "it is " + pod.Status.Phase
	})
	if complaint == "" {
		complaint = l.remove(ctx, "/api/v1/namespaces/load/pods/"+name)
	}
	if complaint != "" {
		return fmt.Errorf("claim %d: %s", i, complaint)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if refused {
		l.refused++
	} else {
		l.claims++
	}
	return nil
}

// remove deletes an object and returns "" when it is gone.
func (l *load) remove(ctx context.Context, path string) string {
	if err := l.w.send(ctx, http.MethodDelete, path, "application/json", ""); err != nil {
		return err.Error()
	}
	return poll(ctx, func() string {
		if err := l.w.get(ctx, path, &object{}); !errors.Is(err, errNotFound) {
			return fmt.Sprintf("it is being deleted (%v)", err)
		}
		return ""
	})
}

// ready returns "" if the Pod of an Instance is ready. A Pod that its kubelet did not admit
// is deleted, as a Deployment would do.
func (l *load) ready(ctx context.Context, name string) string {
	var pod object
	path := "/api/v1/namespaces/load/pods/" + name
	if err := l.w.get(ctx, path, &pod); err != nil {
		return err.Error()
	}
	if pod.Status.Phase == "Failed" {
		l.mu.Lock()
		l.refused++
		l.mu.Unlock()
		return l.remove(ctx, path) + "it was refused"
	}
	if len(pod.Status.ContainerStatuses) != 1 || !pod.Status.ContainerStatuses[0].Ready {
		return "the Pod is " + pod.Status.Phase
	}
	return ""
}

// awaitProgress waits until a device has come and a slot was claimed, both after the
// call: discovery, admission, the controller, agents and kubelets work.
func (l *load) awaitProgress(t *testing.T) {
	t.Helper()
	devices, claims, _, _ := l.counts()
	complaint := poll(t.Context(), func() string {
		d, c, refused, errs := l.counts()
		if len(errs) > 0 {
			t.Fatalf("the load failed: %v", errors.Join(errs...))
		}
		if d < devices+2 || c < claims+2 { // one of each may have begun before the call
			return fmt.Sprintf("%d devices and %d claims since then; %d pods were refused", d-devices, c-claims, refused)
		}
		return ""
	})
	if complaint != "" {
		t.Fatalf("the load makes no progress: %s", complaint)
	}
}

// counts returns what the load has done.
func (l *load) counts() (devices, claims, refused int, errs []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.devices, l.claims, l.refused, l.errs
}

// end stops the load and deletes its namespace.
func (l *load) end(t *testing.T) {
	t.Helper()
	l.stop()
	l.loops.Wait()
	devices, claims, refused, errs := l.counts()
	if len(errs) > 0 {
		t.Error(errors.Join(errs...))
	}
	t.Logf("%d devices came and went, %d slots were claimed and released, %d pods were refused by kubelets", devices, claims, refused)
	l.w.kubectl("delete", "namespace", loaded, "--timeout="+timeout.String())
}

// errNotFound reports that an object does not exist.
var errNotFound = errors.New("not found")

// send sends a request that changes something.
func (w *world) send(ctx context.Context, method, path, contentType, body string) error {
	request, err := http.NewRequestWithContext(ctx, method, w.server+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", contentType)
	return w.do(request, nil)
}

// get reads an object.
func (w *world) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server+path, nil)
	if err != nil {
		return err
	}
	return w.do(request, into)
}

// do sends a request and decodes the response.
func (w *world) do(request *http.Request, into any) error {
	response, err := w.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode == http.StatusNotFound:
		return errNotFound
	case response.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s: %s", request.Method, request.URL.Path, response.Status, text)
	case into == nil:
		return nil
	}
	return json.Unmarshal(text, into)
}
