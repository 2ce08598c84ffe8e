package claims

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"akri.sh/akri/agent/instances"
	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/backoff"
	"akri.sh/akri/internal/jsonpatch"
)

const (
	// Deadline bounds a claim or a release, including the read after a lost
	// response. A slow response to the kubelet blocks every Pod of the node.
	Deadline = 2 * time.Second
	// requestTimeout leaves time for a read if a request gets no response.
	requestTimeout = 1200 * time.Millisecond
	// maxTries bounds how often one claim or release is sent because the Instance
	// changed, or because the API server could not write it at that moment.
	maxTries = 8
	// minRetryDelay is the first delay before a request is repeated that failed for a
	// reason that may pass. With the doubled ones, six or seven patches fit into Deadline.
	minRetryDelay = 20 * time.Millisecond
)

// Executor claims and releases slots. It is safe for concurrent use.
type Executor struct {
	client  dynamic.NamespaceableResourceInterface
	store   *instances.Store
	manager string
	dryRun  []string
}

// New returns an executor that writes as the given field manager. The
// client should have no rate limit: the kubelet waits for it.
func New(client dynamic.Interface, store *instances.Store, manager string) *Executor {
	return &Executor{client: client.Resource(v0.InstanceResource), store: store, manager: manager}
}

// Result is the outcome of a claim, a release or a probe.
type Result struct {
	slots.Result
	// Err is the reason if the outcome is not Written.
	Err error
}

// Claim gives owners to free slots, whatever the capacity if containers have the slots already.
// A slot that already has the owner keeps it. Claim changes all slots or none.
func (e *Executor) Claim(ctx context.Context, instance types.NamespacedName, claim slots.Claim) Result {
	c := change{slots: map[string]transition{}, inUse: claim.InUse}
	for number, owner := range claim.Owners {
		c.slots[v0.SlotName(instance.Name, number)] = transition{to: owner}
	}
	kept := false // in the version that the last patch was made for
	result := e.run(ctx, instance, func(a *attempt) (jsonpatch.Patch, error) {
		kept = !a.unknown && c.done(a.instance)
		return c.patch(a.instance)
	})
	result.Kept = kept
	return result
}

// Release frees slots that have the given owners. Slots that are already free stay
// free.
func (e *Executor) Release(ctx context.Context, instance types.NamespacedName, owners map[int]v0.Owner) Result {
	c := change{slots: map[string]transition{}, pinned: true}
	for number, owner := range owners {
		c.slots[v0.SlotName(instance.Name, number)] = transition{from: owner}
	}
	return e.run(ctx, instance, func(a *attempt) (jsonpatch.Patch, error) { return c.patch(a.instance) })
}

// Probe finds out, with a dry run, whether the API server would now accept a claim for
// an owner. It does not claim a slot. The record of its result is one that was read.
func (e *Executor) Probe(ctx context.Context, instance types.NamespacedName, owner v0.Owner) Result {
	dry := *e
	dry.dryRun = []string{metav1.DryRunAll}
	return dry.run(ctx, instance, func(a *attempt) (jsonpatch.Patch, error) { return probe(a.instance, owner), nil })
}

var (
	errTaken    = errors.New("a slot has another owner")
	errFull     = errors.New("the capacity was reduced, and all slots that it allows have owners")
	errLeft     = errors.New("the node has left the Instance")
	errReplaced = errors.New("it was deleted and created again")
)

// run sends the patches that build returns until one is written or refused, or the
// deadline passes. A refusal must come from a fresh read, a success from the API server.
func (e *Executor) run(
	ctx context.Context, name types.NamespacedName, build func(*attempt) (patch jsonpatch.Patch, impossible error),
) Result {
	ctx, cancel := context.WithTimeout(ctx, Deadline)
	defer cancel()
	a := attempt{Executor: e, name: name}
	if a.instance = e.store.Get(name); a.instance != nil {
		a.uid = a.instance.UID
	}
	var last error
	for range maxTries {
		fresh := a.instance == nil
		if fresh {
			if err := a.read(ctx); err != nil {
				last = fmt.Errorf("read Instance %s: %w", name, err)
				if passes(statusCode(err)) && a.pause(ctx) {
					continue
				}
				return a.failed(last)
			}
		}
		patch, impossible := build(&a)
		switch {
		case fresh && impossible != nil:
			return a.failed(impossible)
		case fresh && len(patch) == 0:
			return a.written(a.instance)
		case len(patch) > 0:
			written, final, err := a.send(ctx, patch)
			if err == nil {
				return a.written(written)
			}
			last = fmt.Errorf("patch Instance %s: %w", name, err)
			changed := statusCode(err) == http.StatusUnprocessableEntity // which a read shows at once
			if final || !changed && !a.pause(ctx) {
				return a.failed(last)
			}
		}
		a.instance = nil
	}
	return a.failed(fmt.Errorf("gave up after %d tries: %w", maxTries, last))
}

// attempt is the state of one run.
type attempt struct {
	*Executor
	name     types.NamespacedName
	uid      types.UID // of the Instance that the agent knows, if it knows one
	instance *v0.Instance
	current  *v0.Instance // as read in this run, unless a patch was sent since
	gone     bool         // the Instance does not exist
	unknown  bool         // a patch was sent and not answered
	tried    uint64
	rejected string // the version of the Instance for which a patch was last rejected
	failures int    // how many requests failed
}

// pause waits before a request is repeated. It reports whether there is time for that.
func (a *attempt) pause(ctx context.Context) bool {
	delay := wait.Jitter(backoff.Delay(minRetryDelay, Deadline, a.failures), 0.5)
	a.failures++
	if deadline, found := ctx.Deadline(); found && time.Until(deadline) <= delay {
		return false
	}
	return backoff.Sleep(ctx, delay)
}

func (a *attempt) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	a.current = nil
	object, err := a.client.Namespace(a.name.Namespace).Get(ctx, a.name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		a.gone, a.unknown = true, false // no late patch can change anything
	}
	if err != nil {
		return err
	}
	instance, err := instances.Read(object)
	if err != nil {
		return err
	}
	if a.uid != "" && instance.UID != a.uid { // the watch reports both, or has done so
		a.unknown = false
		return errReplaced
	}
	a.instance, a.current = instance, instance
	a.store.Keep(instance)
	return nil
}

// send sends a patch. An error is final if a retry cannot succeed.
func (a *attempt) send(ctx context.Context, patch jsonpatch.Patch) (written *v0.Instance, final bool, err error) {
	request, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	a.current = nil
	object, err := a.client.Namespace(a.name.Namespace).Patch(request, a.name.Name, types.JSONPatchType, patch.Encode(),
		metav1.PatchOptions{FieldManager: a.manager, DryRun: a.dryRun})
	if err == nil && a.dryRun != nil {
		return a.instance, false, nil // the response has a claim that was not written
	}
	if err == nil {
		if written, err = instances.Read(object); err == nil {
			return written, false, nil
		}
		a.unknown, a.tried = true, max(a.tried, Version(a.instance))
		return nil, true, err
	}
	switch code := statusCode(err); {
	case code == http.StatusUnprocessableEntity:
		// A test failed because the Instance has changed or, if it has not, the
		// change is invalid.
		again := a.rejected == a.instance.ResourceVersion
		a.rejected = a.instance.ResourceVersion
		return nil, again, err
	case code == http.StatusConflict || code == http.StatusTooManyRequests:
		return nil, false, err
	case code >= 400 && code < 500 && code != http.StatusRequestTimeout:
		a.gone = code == http.StatusNotFound
		return nil, true, err
	}
	a.unknown, a.tried = true, max(a.tried, Version(a.instance))
	return nil, ctx.Err() != nil, err
}

func (a *attempt) written(instance *v0.Instance) Result {
	a.store.Keep(instance)
	record := Record(instance)
	return Result{Result: slots.Result{Outcome: slots.Written, Record: &record}}
}

func (a *attempt) failed(err error) Result {
	result := Result{slots.Result{Outcome: slots.Refused, Gone: a.gone}, err}
	if a.unknown {
		result.Outcome, result.Tried = slots.Unknown, a.tried
	}
	if a.current != nil {
		record := Record(a.current)
		result.Record = &record
	}
	return result
}

// passes reports whether a read that was answered with a status may soon succeed.
func passes(code int) bool {
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

// statusCode returns the HTTP status of a response, or 0 if there was none.
func statusCode(err error) int {
	if s := apierrors.APIStatus(nil); errors.As(err, &s) {
		return int(s.Status().Code)
	}
	return 0
}
