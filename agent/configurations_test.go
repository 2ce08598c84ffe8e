package agent

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
)

// Each agent holds all Configurations: of each, it keeps what it reads and nothing
// else.
func TestConfigurationsAreReduced(t *testing.T) {
	now := metav1.Unix(1_700_000_000, 0)
	full := &v0.Configuration{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "cams", UID: "uid", Generation: 3, ResourceVersion: "7", CreationTimestamp: now, DeletionTimestamp: &now,
			Labels: map[string]string{"big": "x"}, Annotations: map[string]string{"big": "x"}, Finalizers: []string{"big"},
			OwnerReferences: []metav1.OwnerReference{{Name: "big"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "big"}},
		},
		Spec: v0.ConfigurationSpec{
			DiscoveryHandler: v0.DiscoveryHandler{Name: "h", DiscoveryDetails: "details",
				DiscoveryProperties: []v0.DiscoveryProperty{{Name: "P"}}},
			Capacity:         2,
			BrokerProperties: map[string]string{"K": "v"},
		},
		Status: v0.ConfigurationStatus{DiscoveryFailures: []v0.DiscoveryFailure{
			{Node: "here", Handler: "h", Message: "ours"}, {Node: "there", Handler: "h", Message: "big"},
			{Node: "elsewhere", Handler: "h", Message: v0.MessageHandlerMissing},
		}, Instances: 3},
	}
	want := full.DeepCopy()
	want.ObjectMeta = metav1.ObjectMeta{Namespace: "ns", Name: "cams", UID: "uid", Generation: 3, ResourceVersion: "7",
		CreationTimestamp: now, DeletionTimestamp: &now}
	want.Status.DiscoveryFailures, want.Status.Instances = want.Status.DiscoveryFailures[:1], 0

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(full)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: content}
	spec := object.Object["spec"].(map[string]any)
	for field := range fieldsOf(v0.ConfigurationSpec{}) {
		if _, found := spec[field]; !found { // whatever it is, it is not kept
			spec[field] = map[string]any{"big": strings.Repeat("x", 10_000)}
		}
	}
	for _, served := range []bool{true, false} {
		got, err := reader{node: "here", served: func(string) bool { return served }}.configuration(object.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		got.CreationTimestamp, got.DeletionTimestamp = now, &now // the same time in another zone
		if !served {
			want.Spec.DiscoveryHandler.DiscoveryDetails, want.Spec.DiscoveryHandler.DiscoveryProperties = "", nil
		}
		if !reflect.DeepEqual(&got.Configuration, want) || got.otherFailures != 2 || got.otherMissing != 1 || !got.discovered ||
			got.withoutRequest == served || got.request.bytes != len("details") {
			t.Errorf("kept:\n%+v\nwant:\n%+v", got, want)
		}
	}
}

// fieldsOf returns the JSON names of a struct's fields.
func fieldsOf(value any) map[string]bool {
	names := map[string]bool{}
	for _, field := range reflect.VisibleFields(reflect.TypeOf(value)) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !slices.Contains([]string{"", "-"}, name) {
			names[name] = true
		}
	}
	return names
}

// A node whose failures did not fit looks again when there is room.
func TestRoomForFailuresMatters(t *testing.T) {
	full, room := &cachedConfiguration{otherFailures: v0.MaxDiscoveryFailures}, &cachedConfiguration{otherFailures: 1}
	if !differ(full, room) || differ(room, full) || differ(room, &cachedConfiguration{otherFailures: 2}) {
		t.Error("want a difference only if the status was full and is not any longer")
	}
}

// The author of a Configuration chooses what it takes to decode it, by its metadata. The
// workers read the large ones one at a time, and none waits for one that does not answer
// longer than it must.
func TestLargeConfigurationsAreReadOneAtATime(t *testing.T) {
	const readers = 4
	var reading, most atomic.Int64
	var waiting sync.WaitGroup
	waiting.Add(readers)
	config := &rest.Config{QPS: -1, Transport: apitest.RoundTripper(func(request *http.Request) (*http.Response, error) {
		now := reading.Add(1)
		defer reading.Add(-1)
		most.Store(max(most.Load(), now))
		waiting.Wait() // for all readers
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
			Body: io.NopCloser(strings.NewReader(`{"kind":"ConfigurationList","apiVersion":"akri.sh/v0","items":[
				{"kind":"Configuration","apiVersion":"akri.sh/v0","metadata":{"name":"c"},"spec":{"discoveryHandler":{"name":"h"}}}]}`)),
		}, nil
	})}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConfigurations(client, reader{served: func(string) bool { return true }}, func(types.NamespacedName) {})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for i := range readers {
		large := &cachedConfiguration{withoutRequest: true}
		large.Namespace, large.Name, large.UID = "ns", fmt.Sprint("c", i), types.UID(fmt.Sprint(i))
		if err := c.informer.GetIndexer().Add(large); err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			waiting.Done()
			if read, err := c.withRequest(t.Context(), &large.Configuration); err != nil || read.Spec.DiscoveryHandler.Name != "h" {
				t.Errorf("%v, %v", read, err)
			}
		})
	}
	running.Wait()
	if most.Load() != 1 {
		t.Errorf("%d Configurations are read at a time, want 1", most.Load())
	}
	c.reading <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	other := &cachedConfiguration{withoutRequest: true}
	other.Namespace, other.Name, other.UID = "ns", "other", "other"
	if err := c.informer.GetIndexer().Add(other); err != nil {
		t.Fatal(err)
	}
	if _, err := c.withRequest(ctx, &other.Configuration); err == nil {
		t.Error("a Configuration was read while another one was being read")
	}
}
