package informers

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/cputime"
)

// forged returns a Deployment, or something like it, as a client can write it that borrows
// the controller's name: with environment variables, and with any managed fields, whose
// entries are given as the operation, the time and the fields.
func forged(t *testing.T, variables int, entries ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	t.Helper()
	env := make([]string, variables)
	for i := range env {
		env[i] = fmt.Sprintf(`{"name":"E%05d"}`, i)
	}
	text := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x","namespace":"ns","uid":"u","resourceVersion":"1"},
		"spec":{"template":{"spec":{"containers":[{"name":"c","env":[` + strings.Join(env, ",") + `]}]}}}}`
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetManagedFields(entries)
	return object
}

// appliedAt and updated return entries of managed fields.
func appliedAt(at time.Time, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: v0.FieldManagerController, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1",
		Time: &metav1.Time{Time: at}, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func updated(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1",
		Time: &metav1.Time{Time: time.Now()}, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// variables returns the fields of environment variables.
func variables(number int) string {
	fields := make([]string, number)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"k:{\"name\":\"E%05d\"}":{}`, i)
	}
	return `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{"f:env":{` + strings.Join(fields, ",") + `}}}}}}}`
}

// One object, however it is written, must not stall the watch of its kind: the next events
// wait while it is read, and the watch ends if none comes for a while.
func TestHostileObjectsAreReadQuickly(t *testing.T) {
	now := time.Now()
	const limit = 15 * time.Second
	others := make([]metav1.ManagedFieldsEntry, 9000)
	for i := range others {
		others[i] = updated(fmt.Sprintf("m%05d", i), fmt.Sprintf(`{"f:f%05d":{}}`, i))
	}
	const levels = 9000
	var nested strings.Builder
	for i := range levels {
		fmt.Fprintf(&nested, `"k:{\"a\":%d}":{".":{},`, i%10)
	}
	deep := `{"f:spec":{` + nested.String() + `"f:x":{}` + strings.Repeat("}", levels) + `}}`
	for name, object := range map[string]*unstructured.Unstructured{
		"many entries, many paths": forged(t, 16_000, appliedAt(now, variables(30_000))),
		"many managers":            forged(t, 1, append(others, appliedAt(now, `{"f:spec":{}}`))...),
		"deep fields":              forged(t, 1, appliedAt(now, deep), updated("edit", deep)),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var trimmed *Object
			took := cputime.Of(func() { trimmed = Trim(object) })
			if !trimmed.ours() {
				t.Error("it is not the controller's, so the rest was not read")
			}
			if took > limit {
				t.Errorf("it took %v, want less than %v", took, limit)
			} else {
				t.Log(took)
			}
			runtime.ReadMemStats(&after)
			const most = 1 << 30 // allocated, not held at a time
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > most {
				t.Errorf("it took %d MiB", allocated>>20)
			} else {
				t.Logf("%d MiB", allocated>>20)
			}
		})
	}
}
