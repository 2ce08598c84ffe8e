package informers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"akri.sh/akri/controller/objects"
)

// streams opens watches whose events are decoded directly into an [Object].
// client-go's own decoder reads each event five times, which was a quarter of the
// controller's CPU time while many objects were created, and most of its garbage.
type streams struct {
	client rest.Interface
	timing timing
}

func newStreams(config *rest.Config, transport *http.Client, t timing) (*streams, error) {
	client, err := objects.REST(config, transport)
	if err != nil {
		return nil, fmt.Errorf("watches: %w", err)
	}
	return &streams{client: client, timing: t}, nil
}

// observer is told what happens to streams. streamClosed is called once for each
// requested stream; its error is nil if the API server has ended the stream in
// order, and errAbandoned if this side has.
type observer interface {
	streamRequested(*stream)
	streamOpened()
	streamHeard()
	streamClosed(error)
}

// open begins a watch of a resource in all namespaces.
func (s *streams) open(
	ctx context.Context, resource schema.GroupVersionResource, options metav1.ListOptions, o observer, events decoder,
) (apiwatch.Interface, error) {
	timeout := s.timing.stream + rand.N(s.timing.stream/3)
	ctx, cancel := context.WithCancel(ctx)
	watch := &stream{
		cancel: cancel, decoder: events, observer: o,
		results: make(chan apiwatch.Event), stopped: make(chan struct{}),
	}
	limit := timeout + s.timing.delayedEnd
	if options.SendInitialEvents != nil && *options.SendInitialEvents { // a long list takes longer than the timeout
		watch.listing, watch.pause, watch.rest = true, s.timing.pause, timeout/4
		limit = s.timing.pause
	} else {
		options.TimeoutSeconds = new(max(1, int64(timeout.Seconds())))
	}
	watch.limit = time.AfterFunc(limit, watch.expire)
	o.streamRequested(watch)
	options.Watch = true
	request := s.client.Get().AbsPath(objects.Path(resource)...).
		SpecificallyVersionedParams(&options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"})
	body, err := request.Stream(ctx)
	if err != nil {
		err = watch.stop(err)
		watch.limit.Stop()
		o.streamClosed(err)
		return nil, err
	}
	watch.body = body
	o.streamOpened()
	go watch.receive()
	return watch, nil
}

// stream is one watch. It ends when the API server ends it, when Stop is called, or
// at its limit.
type stream struct {
	body     io.ReadCloser
	cancel   context.CancelFunc
	decoder  decoder
	observer observer
	results  chan apiwatch.Event

	once    sync.Once
	cause   error // set before stopped is closed
	stopped chan struct{}

	// limit ends the stream. While it sends the first list, each event sets it to
	// pause; the end of the list sets it to rest, after which a stream begins that the
	// API server ends.
	limit       *time.Timer
	pause, rest time.Duration
	listing     bool // used by receive only
	listed      atomic.Bool
}

func (s *stream) ResultChan() <-chan apiwatch.Event { return s.results }

func (s *stream) Stop() { s.end(errAbandoned) }

// stop ends the stream unless it has ended. It returns why it ended.
func (s *stream) stop(cause error) error {
	s.end(cause)
	<-s.stopped
	return s.cause
}

// end is stop for a caller that does not read the cause.
func (s *stream) end(cause error) {
	s.once.Do(func() {
		s.cause = cause
		close(s.stopped)
		s.cancel() // ends the request, and wakes the receiver
	})
}

// expire ends the stream at its limit. If it has just delivered the list, it may be
// quiet. Otherwise the API server should have ended it.
func (s *stream) expire() {
	if s.listed.Load() {
		s.Stop()
		return
	}
	s.end(errSilent)
}

// receive sends the events until the stream ends.
func (s *stream) receive() {
	defer close(s.results)
	defer s.body.Close()
	defer s.limit.Stop()
	err := s.forward()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	s.observer.streamClosed(s.stop(err)) // the reflector watches again
}

// maxLine is the size of the largest buffer that a stream keeps for its next event.
const maxLine = 64 << 10

// forward sends the events until the stream ends, and returns why it ended.
func (s *stream) forward() error {
	lines := bufio.NewReaderSize(s.body, 16<<10)
	var line []byte
	for {
		part, err := lines.ReadSlice('\n') // the API server ends each event with a newline; JSON contains no other
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return err
		}
		event := s.decoder.decode(line)
		if line = line[:0]; cap(line) > maxLine {
			line = nil
		}
		s.heard(event)
		select {
		case s.results <- event:
		case <-s.stopped:
			return errAbandoned
		}
		if event.Type == apiwatch.Error {
			return s.stop(apierrors.FromObject(event.Object))
		}
	}
}

// heard observes an event, and sets the limit while the first list arrives.
func (s *stream) heard(event apiwatch.Event) {
	s.observer.streamHeard()
	if !s.listing || !s.limit.Stop() { // the limit has been reached
		return
	}
	object, ok := event.Object.(*Object)
	if ok && event.Type == apiwatch.Bookmark && object.endsList {
		s.listing = false
		s.listed.Store(true)
		s.limit.Reset(s.rest)
		return
	}
	s.limit.Reset(s.pause)
}

// decoder decodes lines into events.
type decoder struct {
	// recentlyApplied returns the object that an apply has produced if the event delivers
	// exactly that version, or nil.
	recentlyApplied func(types.NamespacedName, types.UID, string) *Object
	// trim returns what is kept of an object.
	trim func(*unstructured.Unstructured) *Object
}

// eventHead is the part of an event that is decoded first, to decide about the rest.
type eventHead struct {
	Type   apiwatch.EventType `json:"type"`
	Object struct {
		Metadata struct {
			Name            string            `json:"name"`
			Namespace       string            `json:"namespace"`
			UID             types.UID         `json:"uid"`
			ResourceVersion string            `json:"resourceVersion"`
			Annotations     map[string]string `json:"annotations"`
		} `json:"metadata"`
	} `json:"object"`
}

// decode decodes an event. Of an object whose version is that of an answer to an apply,
// only the head is read: it is in the store already. Other objects are decoded whole and
// trimmed. An event that cannot be read ends the watch.
func (d decoder) decode(line []byte) apiwatch.Event {
	var head eventHead
	if err := json.Unmarshal(line, &head); err != nil {
		return unreadable(err)
	}
	metadata := head.Object.Metadata
	switch head.Type {
	case apiwatch.Added, apiwatch.Modified:
		name := types.NamespacedName{Namespace: metadata.Namespace, Name: metadata.Name}
		if known := d.recentlyApplied(name, metadata.UID, metadata.ResourceVersion); known != nil {
			return apiwatch.Event{Type: head.Type, Object: known}
		}
	case apiwatch.Deleted:
	case apiwatch.Bookmark:
		ends := metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true"
		return apiwatch.Event{Type: head.Type, Object: &Object{ResourceVersion: metadata.ResourceVersion, endsList: ends}}
	case apiwatch.Error:
		var failure struct{ Object metav1.Status }
		if err := json.Unmarshal(line, &failure); err != nil {
			return unreadable(err)
		}
		return apiwatch.Event{Type: head.Type, Object: &failure.Object}
	default:
		return unreadable(fmt.Errorf("unknown event type %q", head.Type))
	}
	var event apiwatch.Event
	objects.InTurn(len(line), func() {
		var whole struct {
			Object map[string]any `json:"object"`
		}
		if err := utiljson.Unmarshal(line, &whole); err != nil {
			event = unreadable(err)
			return
		}
		event = apiwatch.Event{Type: head.Type, Object: d.trim(&unstructured.Unstructured{Object: whole.Object})}
	})
	return event
}

// unreadable returns the event that ends a watch, so that it is started again.
func unreadable(err error) apiwatch.Event {
	return apiwatch.Event{Type: apiwatch.Error, Object: &metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Code: http.StatusInternalServerError,
		Message: fmt.Sprintf("read an event: %v", err),
	}}
}
