package observer

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// apiTimeout bounds a list of the pods: an API server that does not respond must not
// stop the observations.
const apiTimeout = 5 * time.Second

// apiPods reads this node's Pods from the API server.
type apiPods struct {
	client dynamic.Interface
	node   string
}

func (a apiPods) options() metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: "spec.nodeName=" + a.node}
}

// list reads the Pods into a store and returns the resourceVersion to watch from.
// The request names no resourceVersion, so the read is consistent.
func (a apiPods) list(ctx context.Context, into *store) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	list, err := a.client.Resource(podResource).List(ctx, a.options())
	if err != nil {
		return "", fmt.Errorf("list the Pods of node %s: %w", a.node, err)
	}
	pods := make([]podInfo, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, readPod(&list.Items[i]))
	}
	into.replace(pods)
	return list.GetResourceVersion(), nil
}

// watch lists and watches the Pods until the watch ends, and returns why it ended.
// It calls synced when the watch has begun.
func (a apiPods) watch(ctx context.Context, into *store, synced func()) error {
	defer into.trust(false)
	version, err := a.list(ctx, into)
	if err != nil {
		return err
	}
	options := a.options()
	options.ResourceVersion = version
	events, err := a.client.Resource(podResource).Watch(ctx, options)
	if err != nil {
		return fmt.Errorf("watch the Pods of node %s: %w", a.node, err)
	}
	defer events.Stop()
	into.trust(true)
	synced()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open := <-events.ResultChan():
			if !open {
				return nil
			}
			object, ok := event.Object.(*unstructured.Unstructured)
			switch {
			case event.Type == watch.Error:
				return apierrors.FromObject(event.Object)
			case !ok:
			case event.Type == watch.Deleted:
				into.put(readPod(object)) // its last status shows whether it terminated
				into.remove(string(object.GetUID()), false)
			default:
				into.put(readPod(object))
			}
		}
	}
}

// readPod reads a Pod of the API server. A field of an unexpected type counts as
// absent, so an unreadable Pod does not count as terminated.
func readPod(object *unstructured.Unstructured) podInfo {
	f := podFacts{
		uid: string(object.GetUID()), namespace: object.GetNamespace(), name: object.GetName(),
		deleting: object.GetDeletionTimestamp() != nil,
	}
	_, admitted, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "startTime")
	f.waiting = !admitted
	f.phase, _, _ = unstructured.NestedString(object.Object, "status", "phase")
	f.claimed = readClaimed(object)
	f.containers = readContainers(object, "containers")
	f.inits = readContainers(object, "initContainers")
	f.statuses = readStates(object, "containerStatuses")
	f.others = append(readStates(object, "initContainerStatuses"), readStates(object, "ephemeralContainerStatuses")...)
	return f.digest()
}

func readContainers(object *unstructured.Unstructured, field string) []container {
	list, _, _ := unstructured.NestedSlice(object.Object, "spec", field)
	var containers []container
	for _, item := range list {
		fields, _ := item.(map[string]any)
		name, _, _ := unstructured.NestedString(fields, "name")
		policy, _, _ := unstructured.NestedString(fields, "restartPolicy")
		containers = append(containers, container{
			name:     name,
			limits:   readQuantities(fields, "limits"),
			requests: readQuantities(fields, "requests"),
			sidecar:  policy == "Always",
		})
	}
	return containers
}

func readQuantities(fields map[string]any, list string) map[string]string {
	values, _, _ := unstructured.NestedMap(fields, "resources", list)
	quantities := map[string]string{}
	for name, value := range values {
		quantities[name] = fmt.Sprint(value)
	}
	return quantities
}

// readClaimed reads the requests that are served by DRA.
func readClaimed(object *unstructured.Unstructured) map[request]bool {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "extendedResourceClaimStatus", "requestMappings")
	claimed := map[request]bool{}
	for _, item := range list {
		fields, _ := item.(map[string]any)
		c, _, _ := unstructured.NestedString(fields, "containerName")
		name, _, _ := unstructured.NestedString(fields, "resourceName")
		claimed[request{c, name}] = true
	}
	return claimed
}

func readStates(object *unstructured.Unstructured, field string) []containerState {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", field)
	var states []containerState
	for _, item := range list {
		fields, _ := item.(map[string]any)
		s := waiting
		if _, ok, _ := unstructured.NestedMap(fields, "state", "terminated"); ok {
			s = terminated
		}
		if _, ok, _ := unstructured.NestedMap(fields, "state", "running"); ok {
			s = running
		}
		states = append(states, s)
	}
	return states
}
