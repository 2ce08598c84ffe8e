package claims

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

const (
	// Deadline is how long a claim or a release may take, reading back included.
	// A slow answer to the kubelet blocks every pod of the node.
	Deadline = 2 * time.Second
	// requestTimeout leaves time to read back what became of a request that
	// nobody answered.
	requestTimeout = 1200 * time.Millisecond
	// maxTries bounds how often one claim or release is sent anew because the
	// record had changed.
	maxTries = 8
)

// Executor claims and releases slots for one node. It is safe for concurrent
// use.
type Executor struct {
	instances dynamic.NamespaceableResourceInterface
	node      string
	manager   string

	mu    sync.Mutex
	known map[types.NamespacedName]raw // as seen last, to save a read
}

// New returns an executor that writes through client in the name of a node and
// as a field manager. The client should not limit its own rate: the kubelet waits
// for it.
func New(client dynamic.Interface, node, manager string) *Executor {
	return &Executor{
		instances: client.Resource(v0.InstanceResource),
		node:      node,
		manager:   manager,
		known:     map[types.NamespacedName]raw{},
	}
}

// Result is what became of a claim or a release.
type Result struct {
	Outcome slots.Outcome
	// Record is what was written, or read after a refusal; nil if the API server
	// said nothing about the slots.
	Record *slots.Record
	// Tried is the latest version for which a patch of unknown outcome was made.
	Tried uint64
	// Err says why the outcome is not Written.
	Err error
}

// Observe takes notice of an Instance as a watch shows it, so that the first try
// needs no read.
func (e *Executor) Observe(instance *v0.Instance) {
	e.remember(types.NamespacedName{Namespace: instance.Namespace, Name: instance.Name}, observed(instance))
}

// Forget drops what is known of an Instance.
func (e *Executor) Forget(instance types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known, instance)
}

// Claim makes the node the owner of slots that are free; slots it owns already
// stay. All or none.
func (e *Executor) Claim(ctx context.Context, instance types.NamespacedName, numbers []int) Result {
	return e.run(ctx, instance, change{
		slots: names(instance.Name, numbers),
		to:    v0.Owner{Node: e.node},
	})
}

// Release makes slots of the node free; slots that are free already stay.
func (e *Executor) Release(ctx context.Context, instance types.NamespacedName, numbers []int) Result {
	return e.run(ctx, instance, change{
		slots:  names(instance.Name, numbers),
		from:   v0.Owner{Node: e.node},
		pinned: true,
	})
}

func names(instance string, numbers []int) []string {
	var out []string
	for _, number := range numbers {
		out = append(out, v0.SlotName(instance, number))
	}
	return out
}

// errTaken is the refusal by somebody else's ownership.
var errTaken = errors.New("a slot has another owner")

// run sends a change until it is written, refused or out of time.
func (e *Executor) run(ctx context.Context, instance types.NamespacedName, c change) Result {
	ctx, cancel := context.WithTimeout(ctx, Deadline)
	defer cancel()
	a := attempt{Executor: e, instance: instance, change: c}
	a.object, a.cached = e.recall(instance)
	fresh := false
	for range maxTries {
		if !a.cached && !fresh {
			if err := a.readBack(ctx); err != nil {
				return a.ended(fmt.Errorf("read Instance %s: %w", instance, err))
			}
			fresh = true
		}
		patch, possible := c.build(a.object)
		switch {
		case fresh && !possible:
			return a.ended(errTaken)
		case fresh && patch == nil:
			return a.written(a.object)
		case possible && patch != nil:
			written, final, err := a.send(ctx, patch)
			if err == nil {
				return a.written(written)
			}
			if final {
				return a.ended(fmt.Errorf("patch Instance %s: %w", instance, err))
			}
		}
		a.cached, fresh = false, false
	}
	return a.ended(errors.New("the record kept changing"))
}

// attempt is one run's memory.
type attempt struct {
	*Executor
	instance types.NamespacedName
	change   change
	object   raw
	cached   bool // object is a watch's word
	seen     bool // object was read in this run
	unknown  bool // a patch was sent that nobody answered
	tried    uint64
}

func (a *attempt) readBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	object, err := a.instances.Namespace(a.instance.Namespace).Get(ctx, a.instance.Name, metav1.GetOptions{})
	if err != nil {
		if apierrors.IsNotFound(err) {
			a.Forget(a.instance)
			a.unknown = false // nothing is left that a late patch could change
		}
		a.seen = false
		return err
	}
	a.object, a.seen = read(object), true
	a.remember(a.instance, a.object)
	return nil
}

// send sends a patch. An error is final if trying again is of no use.
func (a *attempt) send(ctx context.Context, patch []byte) (written raw, final bool, err error) {
	request, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	object, err := a.instances.Namespace(a.instance.Namespace).Patch(request, a.instance.Name, types.JSONPatchType, patch,
		metav1.PatchOptions{FieldManager: a.manager})
	if err == nil {
		return read(object), false, nil
	}
	a.seen = false
	switch code := status(err); {
	case code == http.StatusConflict || code == http.StatusUnprocessableEntity || code == http.StatusTooManyRequests:
		return raw{}, false, err // a test failed, or another writer was faster
	case code >= 400 && code < 500 && code != http.StatusRequestTimeout:
		return raw{}, true, err
	}
	a.unknown, a.tried = true, max(a.tried, number(a.object.version))
	return raw{}, ctx.Err() != nil, err
}

func (a *attempt) written(object raw) Result {
	a.remember(a.instance, object)
	record := object.record(a.instance.Name)
	return Result{Outcome: slots.Written, Record: &record}
}

func (a *attempt) ended(err error) Result {
	result := Result{Outcome: slots.Refused, Err: err}
	if a.unknown {
		result.Outcome, result.Tried = slots.Unknown, a.tried
	}
	if a.seen {
		record := a.object.record(a.instance.Name)
		result.Record = &record
	}
	return result
}

func (e *Executor) recall(instance types.NamespacedName) (raw, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	object, known := e.known[instance]
	return object, known
}

// remember keeps the newest word on an Instance.
func (e *Executor) remember(instance types.NamespacedName, object raw) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if number(object.version) >= number(e.known[instance].version) {
		e.known[instance] = object
	}
}

// status is the HTTP status of an answer; 0 if there was none.
func status(err error) int {
	if s := apierrors.APIStatus(nil); errors.As(err, &s) {
		return int(s.Status().Code)
	}
	return 0
}
