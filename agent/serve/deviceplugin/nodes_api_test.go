package deviceplugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
)

// memoryAPI is an API server in memory for Instances of one namespace, as far as the
// serving half of an agent uses it. Other tests use a real one; only this one follows
// the clock of a bubble and can delay, lose and repeat requests.
type memoryAPI struct {
	violation func(format string, arguments ...any)

	mu      sync.Mutex
	version int
	objects map[string]*v0.Instance
	history []memoryEvent // version v is at v-1
	grown   chan struct{} // closed when history grows
}

type memoryEvent struct {
	Type   string `json:"type"`
	Object any    `json:"object"`
}

func newMemoryAPI(violation func(string, ...any)) *memoryAPI {
	return &memoryAPI{violation: violation, objects: map[string]*v0.Instance{}, grown: make(chan struct{})}
}

// put stores an Instance under a new version. The caller holds mu.
func (a *memoryAPI) put(instance *v0.Instance) {
	kind := "MODIFIED"
	if a.objects[instance.Name] == nil {
		kind = "ADDED"
	}
	a.version++
	instance.ResourceVersion = strconv.Itoa(a.version)
	instance.Generation++
	a.objects[instance.Name] = instance
	a.history = append(a.history, memoryEvent{kind, instance})
	close(a.grown)
	a.grown = make(chan struct{})
}

func (a *memoryAPI) create(instance *v0.Instance) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.put(instance)
}

// usage returns the owners of an Instance's slots.
func (a *memoryAPI) usage(instance string) map[string]v0.SlotOwner {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.objects[instance].Spec.DeviceUsage)
}

// patch applies a JSON Patch to an Instance. It returns the HTTP status.
func (a *memoryAPI) patch(name string, operations []jsonpatch.Operation, dryRun bool) (*v0.Instance, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.objects[name]
	if before == nil {
		return nil, http.StatusNotFound
	}
	after := before.DeepCopy()
	for _, operation := range operations {
		if !apply(operation, after) {
			return nil, http.StatusUnprocessableEntity
		}
	}
	for slot, owner := range before.Spec.DeviceUsage { // a rule of the CRD
		if now := after.Spec.DeviceUsage[slot]; owner != "" && now != "" && now != owner {
			return nil, http.StatusUnprocessableEntity
		}
	}
	if dryRun || reflect.DeepEqual(before, after) {
		return after, http.StatusOK
	}
	a.put(after)
	return after, http.StatusOK
}

// apply applies an operation to an Instance, and reports whether it succeeded.
func apply(operation jsonpatch.Operation, instance *v0.Instance) bool {
	usage := instance.Spec.DeviceUsage
	slot, ofSlot := strings.CutPrefix(operation.Path, "/spec/deviceUsage/")
	switch {
	case operation.Op == "test" && operation.Path == "/metadata/resourceVersion":
		return operation.Value == instance.ResourceVersion
	case operation.Op == "test" && operation.Path == "/metadata/uid":
		return operation.Value == string(instance.UID)
	case operation.Op == "test" && operation.Path == "/spec/deviceUsage":
		return operation.Value == nil && usage == nil
	case operation.Op == "add" && operation.Path == "/spec/deviceUsage":
		instance.Spec.DeviceUsage = map[string]v0.SlotOwner{}
		for name, owner := range operation.Value.(map[string]any) {
			instance.Spec.DeviceUsage[name] = v0.SlotOwner(owner.(string))
		}
		return true
	case !ofSlot:
		panic(fmt.Sprintf("the API in memory does not know %+v", operation))
	}
	owner, found := usage[slot]
	switch operation.Op {
	case "test":
		return operation.Value == nil && !found || operation.Value == string(owner) && found
	case "remove":
		if delete(usage, slot); len(usage) == 0 {
			instance.Spec.DeviceUsage = nil // the type cannot express an empty map
		}
		return found
	case "add", "replace":
		if usage == nil || operation.Op == "replace" && !found {
			return false
		}
		usage[slot] = v0.SlotOwner(operation.Value.(string))
		return true
	}
	panic(fmt.Sprintf("the API in memory does not know %+v", operation))
}

// serve serves a request.
func (a *memoryAPI) serve(r *http.Request, body []byte, lag func() time.Duration) *http.Response {
	query, name := r.URL.Query(), path.Base(r.URL.Path)
	switch {
	case strings.HasSuffix(r.URL.Path, "/events") || strings.Contains(r.URL.Path, "/events/"):
		if bytes.Contains(body, []byte(reasonConflict)) { // nobody edits the record
			a.violation("I1 an agent reports a conflict: %s", body)
		}
		return respond200(json.RawMessage(body))
	case query.Get("watch") != "":
		version, _ := strconv.Atoi(query.Get("resourceVersion"))
		watch := &memoryWatch{ctx: r.Context(), api: a, next: version, lag: lag}
		if query.Get("sendInitialEvents") == "true" {
			watch.start()
		}
		return &http.Response{StatusCode: http.StatusOK, Header: jsonHeader, Body: watch}
	case name == v0.InstanceResource.Resource:
		panic("an agent lists the Instances instead of watching them")
	case r.Method == http.MethodGet:
		a.mu.Lock()
		defer a.mu.Unlock()
		if instance := a.objects[name]; instance != nil {
			return respond200(instance)
		}
		return respondError(http.StatusNotFound)
	case r.Method == http.MethodPatch:
		var operations []jsonpatch.Operation
		if err := json.Unmarshal(body, &operations); err != nil {
			return respondError(http.StatusBadRequest)
		}
		instance, code := a.patch(name, operations, query.Get("dryRun") != "")
		if code != http.StatusOK {
			return respondError(code)
		}
		return respond200(instance)
	}
	panic("the API in memory does not know " + r.Method + " " + r.URL.String())
}

var jsonHeader = http.Header{"Content-Type": {"application/json"}}

func respond200(object any) *http.Response {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: jsonHeader, Body: io.NopCloser(bytes.NewReader(text))}
}

func respondError(code int) *http.Response {
	response := respond200(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Message: "refused", Reason: map[int]metav1.StatusReason{
			http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusConflict: metav1.StatusReasonConflict,
			http.StatusUnprocessableEntity: metav1.StatusReasonInvalid, http.StatusInternalServerError: metav1.StatusReasonInternalError,
		}[code],
	})
	response.StatusCode = code
	return response
}
