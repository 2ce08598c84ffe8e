package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
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

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/backoff"
	"akri.sh/akri/internal/text"
)

const (
	component = "akri-agent"

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

// Recorder writes Events of one node. It is safe for concurrent use.
type Recorder struct {
	client dynamic.NamespaceableResourceInterface
	node   string
	log    *slog.Logger
	limit  *rate.Limiter
	wake   chan struct{} // has room for one: a series is due

	mu     sync.Mutex
	events *aggregate
	fullAt time.Time // when it was last logged that there are too many series
}

// New returns a recorder that writes nothing until Run is called.
func New(client dynamic.Interface, node string, log *slog.Logger) *Recorder {
	return &Recorder{
		client: client.Resource(eventResource), node: node, log: log,
		limit: rate.NewLimiter(perSecond, burst), wake: make(chan struct{}, 1), events: newAggregate(),
	}
}

// Warn records an Event of type Warning, and logs it unless it was logged within
// [Interval]. The subject, such as a slot, distinguishes Events about one object with the
// same reason. Warn does not wait for the API server.
func (r *Recorder) Warn(object Object, subject, reason, message string) {
	now := time.Now()
	r.mu.Lock()
	due, counted := r.events.add(key{object, subject, reason}, message, now)
	full := !counted && now.Sub(r.fullAt) >= Interval
	if full {
		r.fullAt = now
	}
	r.mu.Unlock()
	if full {
		r.log.Warn("Too many different Events: further ones are neither logged nor written", "limit", maxSeries)
	}
	if !due {
		return
	}
	r.log.Warn("Emitting an Event", "kind", object.Kind, "namespace", object.Namespace, "name", object.Name,
		"reason", reason, "message", message)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run writes Events until ctx is done. It repeats a write that fails for reasons that
// pass.
func (r *Recorder) Run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		if _, found := r.next(); !found {
			select {
			case <-ctx.Done():
			case <-r.wake:
			}
			continue
		}
		if r.limit.Wait(ctx) != nil {
			return
		}
		if r.writeNext(ctx) {
			failures = 0
			continue
		}
		delay := backoff.Delay(minRetryDelay, maxRetryDelay, failures)
		failures++
		select {
		case <-ctx.Done():
		case <-time.After(delay - rand.N(delay/4)):
		}
	}
}

func (r *Recorder) next() (series, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events.next()
}

// writeNext writes the Event of the next series. It returns false if the write is to be
// repeated.
func (r *Recorder) writeNext(ctx context.Context) bool {
	tried, _ := r.next()
	result, err := tried, error(nil)
	if tried.object.Namespace != "" { // otherwise, the object is not known any more
		result, err = r.write(ctx, tried)
	}
	if err != nil {
		r.log.Debug("Could not write an Event", "object", tried.object.Name, "reason", tried.reason, "err", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && passes(err) {
		r.events.postpone(time.Now())
		return false
	}
	r.events.settle(tried, result, time.Now())
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

// write creates the Event of a series, or updates it. It returns the series with the name
// and the count of the Event.
func (r *Recorder) write(ctx context.Context, s series) (series, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	events := r.client.Namespace(s.object.Namespace)
	message := text.Truncate(s.message, maxMessageBytes)
	result := s
	if s.name != "" {
		patch, err := json.Marshal(map[string]any{"count": s.count, "lastTimestamp": stamp(s.last), "message": message})
		if err != nil {
			return s, err
		}
		_, err = events.Patch(ctx, s.name, types.MergePatchType, patch, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			return s, err
		}
		result.first, result.count = s.last, 1 // the Event has expired
	}
	// The same name for each try: one without a response may have succeeded.
	result.name = fmt.Sprintf("%s.%x", s.object.Name, s.due.UnixNano())
	_, err := events.Create(ctx, r.event(message, result), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return s, err
	}
	return result, nil
}

func (r *Recorder) event(message string, s series) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"metadata": map[string]any{"namespace": s.object.Namespace, "name": s.name},
		"involvedObject": map[string]any{
			"apiVersion": v0.GroupVersion.String(), "kind": s.object.Kind,
			"namespace": s.object.Namespace, "name": s.object.Name, "uid": string(s.object.UID),
		},
		"type": "Warning", "reason": s.reason, "message": message,
		"source":         map[string]any{"component": component, "host": r.node},
		"count":          int64(s.count),
		"firstTimestamp": stamp(s.first), "lastTimestamp": stamp(s.last),
		"reportingComponent": component, "reportingInstance": r.node,
	}}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
