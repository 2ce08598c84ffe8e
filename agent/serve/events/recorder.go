package events

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/text"
)

const (
	component = "akri-agent"

	requestTimeout = 5 * time.Second
	// maxPending bounds the occurrences that wait for the API server.
	maxPending = 100
	// perSecond and burst bound the writes of one agent.
	perSecond, burst = 1, 20
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
	client  dynamic.NamespaceableResourceInterface
	node    string
	log     *slog.Logger
	pending chan occurrence
	limit   *rate.Limiter
}

type occurrence struct {
	key
	message string
	at      time.Time
}

// New returns a recorder that writes nothing until Run is called.
func New(client dynamic.Interface, node string, log *slog.Logger) *Recorder {
	return &Recorder{
		client: client.Resource(eventResource), node: node, log: log,
		pending: make(chan occurrence, maxPending), limit: rate.NewLimiter(perSecond, burst),
	}
}

// Warn records an Event of type Warning. The subject, such as a slot, distinguishes
// Events about one object with the same reason. Warn does not block; it drops the
// Event if too many are pending.
func (r *Recorder) Warn(object Object, subject, reason, message string) {
	select {
	case r.pending <- occurrence{key{object, subject, reason}, message, time.Now()}:
	default:
	}
}

// Run writes Events until ctx is done.
func (r *Recorder) Run(ctx context.Context) {
	seen := newAggregate()
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-r.pending:
			s := seen.add(o.key, o.at)
			if s == nil || !r.limit.Allow() {
				continue
			}
			s.written = o.at
			r.log.Warn("Emitting an Event", "kind", o.object.Kind, "namespace", o.object.Namespace, "name", o.object.Name,
				"reason", o.reason, "message", o.message, "count", s.count)
			if o.object.Namespace == "" {
				continue // the object is not known any more
			}
			if err := r.write(ctx, o, s); err != nil {
				r.log.Debug("Could not write an Event", "object", o.object.Name, "reason", o.reason, "err", err)
			}
		}
	}
}

// write creates the Event of a series, or updates it.
func (r *Recorder) write(ctx context.Context, o occurrence, s *series) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	events := r.client.Namespace(o.object.Namespace)
	message := text.Truncate(o.message, maxMessageBytes)
	if s.name != "" {
		patch, err := json.Marshal(map[string]any{"count": s.count, "lastTimestamp": stamp(s.last), "message": message})
		if err != nil {
			return err
		}
		_, err = events.Patch(ctx, s.name, types.MergePatchType, patch, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			return err
		}
		s.first, s.count = o.at, 1 // the Event has expired
	}
	name := fmt.Sprintf("%s.%x", o.object.Name, o.at.UnixNano())
	_, err := events.Create(ctx, r.event(name, message, o, s), metav1.CreateOptions{})
	if err == nil {
		s.name = name
	}
	return err
}

func (r *Recorder) event(name, message string, o occurrence, s *series) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"metadata": map[string]any{"namespace": o.object.Namespace, "name": name},
		"involvedObject": map[string]any{
			"apiVersion": v0.GroupVersion.String(), "kind": o.object.Kind,
			"namespace": o.object.Namespace, "name": o.object.Name, "uid": string(o.object.UID),
		},
		"type": "Warning", "reason": o.reason, "message": message,
		"source":         map[string]any{"component": component, "host": r.node},
		"count":          int64(s.count),
		"firstTimestamp": stamp(s.first), "lastTimestamp": stamp(s.last),
		"reportingComponent": component, "reportingInstance": r.node,
	}}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
