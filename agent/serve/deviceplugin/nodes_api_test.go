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
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
)

// memoryAPI is an API server in memory for Instances of one namespace and Pods, as far as
// the agents use it. Other tests use a real one; only this one follows the clock of a bubble
// and can delay, lose and repeat requests.
type memoryAPI struct {
	violation func(format string, arguments ...any)
	// conflict is called with each Event that reports a conflict; it may be nil.
	conflict func(event string)

	mu      sync.Mutex
	reached map[string]int
	created map[string]bool // Instances that ever existed
	version int
	objects map[string]*v0.Instance
	pods    map[types.UID]*corev1.Pod
	history []memoryEvent // version v is at v-1
	grown   chan struct{} // closed when history grows
}

// memoryEvent is a change of an object, which is nil before it was created and after it
// was deleted.
type memoryEvent struct {
	version       int
	before, after metav1.Object
}

func newMemoryAPI(violation func(string, ...any)) *memoryAPI {
	return &memoryAPI{
		violation: violation, objects: map[string]*v0.Instance{}, pods: map[types.UID]*corev1.Pod{}, grown: make(chan struct{}),
		reached: map[string]int{}, created: map[string]bool{},
	}
}

// record records a change under a new version. The caller holds mu.
func (a *memoryAPI) record(before, after metav1.Object) {
	a.version++
	if after != nil {
		after.SetResourceVersion(strconv.Itoa(a.version))
	}
	a.history = append(a.history, memoryEvent{a.version, before, after})
	close(a.grown)
	a.grown = make(chan struct{})
}

// put stores an Instance. The caller holds mu.
func (a *memoryAPI) put(instance *v0.Instance) {
	before := a.objects[instance.Name]
	a.objects[instance.Name] = instance
	if before == nil {
		instance.Generation = 1
		instance.UID = types.UID(fmt.Sprint("uid-", a.version+1))
		if a.created[instance.Name] {
			a.reached[createdAgain]++
		}
		a.created[instance.Name] = true
		a.record(nil, instance)
		return
	}
	if !reflect.DeepEqual(before.Spec, instance.Spec) {
		instance.Generation++
	}
	a.record(before, instance)
}

// remove deletes an Instance. The caller holds mu.
func (a *memoryAPI) remove(instance *v0.Instance) {
	delete(a.objects, instance.Name)
	a.record(instance, nil)
}

// get returns an Instance, or nil. Nobody modifies it.
func (a *memoryAPI) get(instance string) *v0.Instance {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.objects[instance]
}

// usage returns the owners of an Instance's slots.
func (a *memoryAPI) usage(instance string) map[string]v0.SlotOwner {
	if object := a.get(instance); object != nil {
		return object.Spec.DeviceUsage
	}
	return nil
}

// edit changes an Instance as a user does. It reports whether that is allowed.
func (a *memoryAPI) edit(name string, change func(*v0.Instance)) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.objects[name]
	if before == nil {
		return false
	}
	after := before.DeepCopy()
	change(after)
	if reflect.DeepEqual(before, after) || !keepsOwners(before, after) {
		return false
	}
	a.put(after)
	return true
}

// keepsOwners is a rule of the CRD.
func keepsOwners(before, after *v0.Instance) bool {
	for slot, owner := range before.Spec.DeviceUsage {
		if now := after.Spec.DeviceUsage[slot]; owner != "" && now != "" && now != owner {
			return false
		}
	}
	return true
}

// patch applies a JSON Patch of a node's agent to an Instance. It returns the HTTP status.
func (a *memoryAPI) patch(node, name string, patch []jsonpatch.Operation, dryRun bool) (*v0.Instance, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.objects[name]
	if before == nil {
		return nil, http.StatusNotFound
	}
	after, ok := patched(before, patch)
	if !ok || !keepsOwners(before, after) {
		return nil, http.StatusUnprocessableEntity
	}
	if excess := exceeds(node, before, after); excess != "" {
		a.violation("I1 the agent of %s may not change %s of %s: %+v", node, excess, name, patch)
	}
	if dryRun || reflect.DeepEqual(before, after) {
		return after, http.StatusOK
	}
	switch owners := len(after.Spec.DeviceUsage) - len(before.Spec.DeviceUsage); {
	case owners > 0:
		a.reached[claimed]++
		if _, joined := before.Labels[v0.NodeLabel(node)]; !joined { // its next agent would not see it
			a.violation("%s owns a slot of %s, which it has left: %+v", node, name, patch)
		}
	case owners < 0:
		a.reached[released]++
	}
	_, labelled := after.Labels[v0.NodeLabel(node)]
	if labelled && len(after.Spec.Nodes) < len(before.Spec.Nodes) {
		a.reached[leftInUse]++
	}
	a.put(after)
	return after, http.StatusOK
}

// count counts what the schedules reach.
func (a *memoryAPI) count(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reached[what]++
}

// exceeds returns what the policy for agents would deny, or "".
func exceeds(node string, before, after *v0.Instance) string {
	others := func(instance *v0.Instance) map[string]v0.SlotOwner {
		usage := maps.Clone(instance.Spec.DeviceUsage)
		maps.DeleteFunc(usage, func(_ string, value v0.SlotOwner) bool {
			owner, err := v0.ParseOwner(string(value))
			return value == "" || err == nil && owner.Node == node
		})
		return usage
	}
	without := func(nodes []string) []string {
		return slices.DeleteFunc(slices.Clone(nodes), func(other string) bool { return other == node })
	}
	switch {
	case !maps.Equal(others(before), others(after)):
		return "spec.deviceUsage"
	case !slices.Equal(without(before.Spec.Nodes), without(after.Spec.Nodes)):
		return "spec.nodes"
	case before.Spec.Capacity != after.Spec.Capacity && len(before.Spec.Nodes) > 0 && before.Spec.Nodes[0] != node:
		return "spec.capacity"
	}
	return ""
}

// create creates an Instance. It returns the HTTP status.
func (a *memoryAPI) create(instance *v0.Instance) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.objects[instance.Name] != nil {
		return statusAlreadyExists
	}
	a.put(instance)
	return http.StatusOK
}

// delete deletes an Instance for a node's agent. It returns the HTTP status.
func (a *memoryAPI) delete(node, name string, options metav1.DeleteOptions) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	instance := a.objects[name]
	if instance == nil {
		return http.StatusNotFound
	}
	if p := options.Preconditions; p == nil || *p.UID != instance.UID || *p.ResourceVersion != instance.ResourceVersion {
		return http.StatusConflict
	}
	owned := func(owner v0.SlotOwner) bool { return owner != "" && (instance.Spec.Shared || string(owner) != node) }
	if slices.ContainsFunc(instance.Spec.Nodes, func(other string) bool { return other != node }) ||
		instance.Spec.Shared && slices.ContainsFunc(slices.Collect(maps.Values(instance.Spec.DeviceUsage)), owned) {
		a.violation("I2 the agent of %s deletes %s with the nodes %v and the owners %v",
			node, name, instance.Spec.Nodes, instance.Spec.DeviceUsage)
	}
	a.remove(instance)
	return http.StatusOK
}

// serve serves a request that arrives through a link.
func (a *memoryAPI) serve(l *memoryLink, r *http.Request, body []byte) *http.Response {
	query, name := r.URL.Query(), path.Base(r.URL.Path)
	switch {
	case strings.HasSuffix(r.URL.Path, "/events") || strings.Contains(r.URL.Path, "/events/"):
		if bytes.Contains(body, []byte(reasonConflict)) {
			a.conflict(string(body))
		}
		return respond200(json.RawMessage(body))
	case query.Get("watch") != "":
		return &http.Response{StatusCode: http.StatusOK, Header: jsonHeader, Body: newMemoryWatch(r, l)}
	case name == "pods":
		return respond200(a.listPods(l.node))
	case r.Method == http.MethodPost:
		instance := &v0.Instance{}
		decode(body, instance)
		return respondWith(a.create(instance), instance)
	case name == v0.InstanceResource.Resource:
		panic("an agent lists the Instances instead of watching them")
	case r.Method == http.MethodGet:
		if instance := a.get(name); instance != nil {
			return respond200(instance)
		}
		return respondError(http.StatusNotFound)
	case r.Method == http.MethodPatch:
		var operations []jsonpatch.Operation
		decode(body, &operations)
		instance, code := a.patch(l.node, name, operations, query.Get("dryRun") != "")
		return respondWith(code, instance)
	case r.Method == http.MethodDelete:
		var options metav1.DeleteOptions
		decode(body, &options)
		return respondWith(a.delete(l.node, name, options), metav1.Status{Status: metav1.StatusSuccess})
	}
	panic("the API in memory does not know " + r.Method + " " + r.URL.String())
}

func decode(text []byte, into any) {
	if err := json.Unmarshal(text, into); err != nil {
		panic(err)
	}
}

var jsonHeader = http.Header{"Content-Type": {"application/json"}}

func respondWith(code int, object any) *http.Response {
	if code != http.StatusOK {
		return respondError(code)
	}
	return respond200(object)
}

func respond200(object any) *http.Response {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: jsonHeader, Body: io.NopCloser(bytes.NewReader(text))}
}

// statusAlreadyExists is a conflict with another reason.
const statusAlreadyExists = -http.StatusConflict

var statusReasons = map[int]metav1.StatusReason{
	http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
	http.StatusConflict: metav1.StatusReasonConflict, statusAlreadyExists: metav1.StatusReasonAlreadyExists,
	http.StatusUnprocessableEntity: metav1.StatusReasonInvalid, http.StatusInternalServerError: metav1.StatusReasonInternalError,
}

func respondError(code int) *http.Response {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(max(code, -code)), Message: "refused", Reason: statusReasons[code],
	}
	response := respond200(status)
	response.StatusCode = int(status.Code)
	return response
}
