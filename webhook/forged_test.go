package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
	"akri.sh/akri/webhook/certs"
)

// forgedBytes is the size of forged managed fields: the API server stores 1.5 MiB at most.
const forgedBytes = 1200 << 10

// forgedFields returns managed fields of that size, as everybody may write them who may
// update an object: the API server accepts any names of managers and of fields.
func forgedFields() []metav1.ManagedFieldsEntry {
	fields := make([]string, forgedBytes/1000)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"f:%0990d":{}`, i)
	}
	return []metav1.ManagedFieldsEntry{{
		Manager: "forger", Operation: metav1.ManagedFieldsOperationApply, APIVersion: v0.GroupVersion.String(),
		Time: &metav1.Time{Time: time.Now()}, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{` + strings.Join(fields, ",") + `}}`),
	}}
}

// forge adds such managed fields to an object.
func (w *world) forge(resource schema.GroupVersionResource, name string) {
	w.Helper()
	api := w.as("").api.Resource(resource).Namespace(w.Namespace)
	object, err := api.Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	object.SetManagedFields(append(object.GetManagedFields(), forgedFields()...))
	if object, err = api.Update(w.Context(), object, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	size := 0
	for _, entry := range object.GetManagedFields() {
		size += len(entry.FieldsV1.GetRawString())
	}
	if size < forgedBytes*9/10 {
		w.Fatalf("the API server stored %d bytes of managed fields, want %d", size, forgedBytes)
	}
}

// allocated returns the bytes that a function allocates: it holds less at a time.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// Reviews read objects that others write. What they read at a time is what they have reserved
// memory for, however large the metadata is.
func TestForgedMetadataOfOthers(t *testing.T) {
	here, there := newWorld(t), newWorld(t)
	for _, w := range []*world{here, there} {
		expect(t, w.as("").apply(configuration("", "")), "")
		w.forge(v0.ConfigurationResource, "cam")
	}
	const instances = 8
	for i := range instances {
		name := fmt.Sprintf("cam-%d", i)
		here.device("cam", name, "{A: b}")
		here.forge(v0.InstanceResource, name)
	}
	// One that is being deleted is not among those that the update is tried for.
	gone := here.as("").api.Resource(v0.InstanceResource).Namespace(here.Namespace)
	expect(t, here.patchMetadata(here.as("").api, v0.InstanceResource, "cam-0", map[string]any{"finalizers": []string{"example.com/f"}}), "")
	expect(t, gone.Delete(t.Context(), "cam-0", metav1.DeleteOptions{}), "")
	chain, err := NewChain(here.options)
	if err != nil {
		t.Fatal(err)
	}
	r := admissionRequest{user: userInfo("ann"), configuration: &v0.Configuration{}}
	r.configuration.Namespace, r.configuration.Name = here.Namespace, "cam"
	update := r
	update.old = r.configuration.DeepCopy()
	var affected affectedInstances
	for what, tc := range map[string]struct {
		read func() []Finding
		most int
	}{
		"the names of Instances, and one Instance": {func() (findings []Finding) {
			affected, findings = chain.listAffected(t.Context(), update)
			return findings
		}, 2 * renderingBytes}, // in total, and with -race; less at a time
		"the number of Configurations": {func() []Finding { return chain.checkNumber(t.Context(), r) }, 1 << 20},
	} {
		t.Run(what, func(t *testing.T) {
			var findings []Finding
			if took := allocated(func() { findings = tc.read() }); took > tc.most {
				t.Errorf("it took %d KiB, want at most %d", took>>10, tc.most>>10)
			} else {
				t.Logf("%d KiB", took>>10)
			}
			if len(findings) > 0 {
				t.Error(findings)
			}
		})
	}
	if len(affected.names) != instances || affected.properties["A"] != "b" {
		t.Errorf("found %d Instances, and the properties %v", len(affected.names), affected.properties)
	}
	took := allocated(func() {
		if findings := chain.checkName(t.Context(), r); !denied(findings) {
			t.Errorf("another namespace has the name: %v", findings)
		}
	})
	const most = 2 * metadataBytes // one object, which takes more in total, and with -race, than at a time
	if took > most {
		t.Errorf("the name took %d KiB, want at most %d", took>>10, most>>10)
	}
	t.Logf("the name took %d KiB", took>>10)
}

// Requests wait, and are reviewed, without the megabyte of metadata that each brings: one
// user's do not fill the memory in which all wait.
func TestForgedMetadataOfRequests(t *testing.T) {
	// Some less than may wait: one has its review before it no longer waits.
	const share, waiting = maxReviewBytesPerUser / minReviewBytes, maxWaitingBytesPerUser/minWaitingBytes - 4
	fields, err := json.Marshal(forgedFields())
	if err != nil {
		t.Fatal(err)
	}
	object := `{"metadata":{"name":"cam","managedFields":` + string(fields) + `},"spec":{}}`
	update := strings.Replace(question(object), `"operation":"CREATE"`, `"operation":"UPDATE","oldObject":`+object, 1)
	hold := make(chan struct{})
	h := handlerFor(reviewFunc(func(context.Context, admissionRequest) []Finding { <-hold; return nil })).(*reviewHandler)
	before := apitest.LiveHeap()
	var all sync.WaitGroup
	for range share + waiting {
		all.Go(func() {
			if answer := ask(t, h, certs.Path+"?timeout=30s", update); !answer.Allowed {
				t.Errorf("denied: %+v", answer.Result)
			}
		})
	}
	apitest.EventuallyTrue(t, "all requests wait or are reviewed", func() bool {
		h.waiting.mu.Lock()
		h.reviews.mu.Lock()
		defer h.waiting.mu.Unlock()
		defer h.reviews.mu.Unlock()
		return t.Failed() || h.reviews.held["somebody"] == maxReviewBytesPerUser && h.waiting.held["somebody"] == waiting*minWaitingBytes
	})
	if grown := apitest.LiveHeap() - before; grown > 4<<20 {
		t.Errorf("%d requests take %d KiB", share+waiting, grown>>10)
	} else {
		t.Logf("%d requests take %d KiB", share+waiting, grown>>10)
	}
	close(hold)
	all.Wait()
}

// The response to a dry run for an object that exists has what others have added to its
// metadata. All dry runs at the same time have memory for that.
func TestDryRunsAtTheSameTime(t *testing.T) {
	renderings := newSeats(maxRenderingBytes, maxRenderingBytesPerUser)
	count := 0
	for _, user := range []string{"ann", "bob"} {
		for {
			if _, ok := renderings.tryAcquire(user, outline{}.dryRunBytes()); !ok {
				break
			}
			count++
		}
	}
	const body = 1536 << 10   // an object as large as etcd stores it
	const response = 2 * body // the buffer into which it is read grows by being copied
	if total := count * response; count < 8 || total > maxRenderingBytes {
		t.Errorf("%d dry runs at the same time, whose responses take %d MiB: want at least 8, and at most %d MiB",
			count, total>>20, maxRenderingBytes>>20)
	}
}
