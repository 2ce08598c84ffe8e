package events

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/text"
)

const (
	component = "akri-agent"

	// writeInterval is the shortest time between two writes of the same Event.
	writeInterval = 10 * time.Minute
	// maxSeries bounds the memory: further series are dropped until others have
	// ended.
	maxSeries = 1000
	// maxAge is how long an Event that cannot be written is tried. API servers keep
	// Events for an hour by default.
	maxAge = time.Hour

	requestTimeout = 5 * time.Second
	// perSecond and burst bound the writes of one agent.
	perSecond, burst = 1, 20
	// minRetryDelay and maxRetryDelay bound the time until a write that failed is
	// repeated.
	minRetryDelay, maxRetryDelay = 2 * time.Second, time.Minute
	// maxMessageBytes is what the API server accepts.
	maxMessageBytes = 1024
)

var eventResource = schema.GroupVersionResource{Version: "v1", Resource: "events"}

// Object is what an Event is about.
type Object struct {
	// Kind is a kind of the API group akri.sh.
	Kind      string
	Namespace string
	Name      string
	UID       types.UID
}

// key identifies a series of equal Events.
type key struct {
	object  Object
	subject string
	reason  string
}

// series counts the occurrences of an Event.
type series struct {
	message     string // of the last occurrence
	first, last time.Time
	count       int
	// due is when the pending write became due; zero if none is pending.
	due time.Time
	// settled is when the Event was last written or given up; zero if it never was.
	settled time.Time
}

// Recorder writes Events of one node. It is safe for concurrent use.
type Recorder struct {
	client  dynamic.NamespaceableResourceInterface
	node    string
	log     *slog.Logger
	limit   *rate.Limiter
	pending workqueue.TypedRateLimitingInterface[key] // the series that are due

	mu     sync.Mutex
	series map[key]*series
	fullAt time.Time // when it was last logged that there are too many series
}

// New returns a recorder that writes nothing until Run is called.
func New(client dynamic.Interface, node string, log *slog.Logger) *Recorder {
	return &Recorder{
		client: client.Resource(eventResource), node: node, log: log,
		limit: rate.NewLimiter(perSecond, burst), series: map[key]*series{},
		pending: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[key](minRetryDelay, maxRetryDelay)),
	}
}

// Warn records an Event of type Warning, and logs it unless it was logged within ten
// minutes. The subject, such as a slot, distinguishes Events about one object
// with the same reason. Warn does not wait for the API server.
func (r *Recorder) Warn(object Object, subject, reason, message string) {
	k := key{object, subject, reason}
	due, full := r.count(k, message, time.Now())
	if full {
		r.log.Warn("Too many different Events: further ones are neither logged nor written", "limit", maxSeries)
	}
	if due {
		r.log.Warn("Emitting an Event", "kind", object.Kind, "namespace", object.Namespace, "name", object.Name,
			"reason", reason, "message", message)
		r.pending.Add(k)
	}
}

// count counts an occurrence. It reports whether a write has become due, and whether it is to
// be logged that there is no room for the series.
func (r *Recorder) count(k key, message string, now time.Time) (due, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.series[k]
	if s == nil {
		if len(r.series) >= maxSeries {
			r.forget(now)
		}
		if len(r.series) >= maxSeries {
			if full = now.Sub(r.fullAt) >= writeInterval; full {
				r.fullAt = now
			}
			return false, full
		}
		s = &series{first: now}
		r.series[k] = s
	}
	s.count++
	s.last, s.message = now, message
	if !s.due.IsZero() || now.Sub(s.settled) < writeInterval {
		return false, false
	}
	s.due = now
	return true, false
}

// forget drops the series that have ended. The caller holds mu.
func (r *Recorder) forget(now time.Time) {
	for k, s := range r.series {
		if s.due.IsZero() && now.Sub(s.last) >= writeInterval {
			delete(r.series, k)
		}
	}
}

// Run writes Events until ctx is done. It repeats a write that fails for reasons that
// pass.
func (r *Recorder) Run(ctx context.Context) {
	stopped := context.AfterFunc(ctx, r.pending.ShutDown)
	defer stopped()
	for {
		k, ended := r.pending.Get()
		if ended || r.limit.Wait(ctx) != nil {
			return
		}
		if r.write(ctx, k) {
			r.pending.Forget(k)
		} else {
			r.pending.AddRateLimited(k)
		}
		r.pending.Done(k)
	}
}

// write writes the Event of a series. It returns false if the write is to be repeated.
func (r *Recorder) write(ctx context.Context, k key) (settled bool) {
	r.mu.Lock()
	s := r.series[k]
	tried := *s
	r.mu.Unlock()
	if k.object.Namespace != "" { // otherwise, the object is not known any more
		if err := r.apply(ctx, k, tried); err != nil {
			r.log.Debug("Could not write an Event", "object", k.object.Name, "reason", k.reason, "err", err)
			if passes(err) && time.Since(tried.due) < maxAge {
				return false
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.due, s.settled = time.Time{}, time.Now()
	return true
}

// passes reports whether a request that failed may succeed later.
func passes(err error) bool {
	answer := apierrors.APIStatus(nil)
	if !errors.As(err, &answer) {
		return true
	}
	code := answer.Status().Code
	return code == http.StatusUnauthorized || code == http.StatusRequestTimeout || code == http.StatusTooManyRequests ||
		code >= http.StatusInternalServerError
}

// apply creates the Event of a series, or updates it. The name is the same each time, so a
// request whose response was lost can be repeated, and an Event that has expired is created
// again.
func (r *Recorder) apply(ctx context.Context, k key, s series) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	digest := fnv.New64a()
	_, _ = fmt.Fprintf(digest, "%s/%s/%s/%s/%s", r.node, k.object.Kind, k.object.UID, k.reason, k.subject) // never fails
	name := fmt.Sprintf("%s.%x", k.object.Name, digest.Sum64())
	event := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"metadata": map[string]any{"namespace": k.object.Namespace, "name": name},
		"involvedObject": map[string]any{
			"apiVersion": v0.GroupVersion.String(), "kind": k.object.Kind,
			"namespace": k.object.Namespace, "name": k.object.Name, "uid": string(k.object.UID),
		},
		"type": "Warning", "reason": k.reason, "message": text.Truncate(s.message, maxMessageBytes),
		"source":         map[string]any{"component": component, "host": r.node},
		"count":          int64(s.count),
		"firstTimestamp": stamp(s.first), "lastTimestamp": stamp(s.last),
		"reportingComponent": component, "reportingInstance": r.node,
	}}
	_, err := r.client.Namespace(k.object.Namespace).Apply(ctx, name, event, metav1.ApplyOptions{FieldManager: component, Force: true})
	return err
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
