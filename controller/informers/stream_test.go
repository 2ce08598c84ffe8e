package informers

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// received returns a summary of the events in a stream with the given content.
func received(t *testing.T, text string, recentlyApplied func(types.NamespacedName, types.UID, string) *Object) []string {
	t.Helper()
	if recentlyApplied == nil {
		recentlyApplied = func(types.NamespacedName, types.UID, string) *Object { return nil }
	}
	s := &stream{
		body:     io.NopCloser(strings.NewReader(text)),
		cancel:   func() {},
		limit:    time.NewTimer(time.Hour),
		observer: &observed{},
		results:  make(chan apiwatch.Event),
		stopped:  make(chan struct{}),
		decoder:  decoder{recentlyApplied: recentlyApplied, trim: func(full *unstructured.Unstructured) *Object { return Trim(full) }},
	}
	go s.receive()
	var events []string
	for event := range s.ResultChan() {
		switch object := event.Object.(type) {
		case *Object:
			// As client-go's reflector reads it.
			metadata := object.GetObjectMeta()
			events = append(events, fmt.Sprintf("%s %s@%s ready=%v %s", event.Type, metadata.GetName(), metadata.GetResourceVersion(),
				object.Ready, metadata.GetAnnotations()[metav1.InitialEventsAnnotationKey]))
		case *metav1.Status:
			events = append(events, fmt.Sprintf("%s %d %s", event.Type, object.Code, object.Message))
		}
	}
	return events
}

func TestStream(t *testing.T) {
	long := strings.Repeat("x", 100_000) // longer than the reader's buffer
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"objects": {
			text: `{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap",` +
				`"metadata":{"name":"a","namespace":"ns","resourceVersion":"5"},"data":{"k":"` + long + `"}}}` + "\n" +
				`{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"Pod",` +
				`"metadata":{"name":"b","namespace":"ns","resourceVersion":"6"},"status":{"phase":"Pending"}}}` + "\n" +
				`{"type":"DELETED","object":{"apiVersion":"v1","kind":"ConfigMap",` +
				`"metadata":{"name":"a","namespace":"ns","resourceVersion":"7"}}}` + "\n",
			want: []string{"ADDED a@5 ready=true ", "MODIFIED b@6 ready=false ", "DELETED a@7 ready=true "},
		},
		"a bookmark at the end of the list": {
			text: `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1",` +
				`"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n",
			want: []string{"BOOKMARK @9 ready=false true"},
		},
		"a bookmark": {
			text: `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1",` +
				`"metadata":{"resourceVersion":"9","annotations":{"note":"other"}}}}` + "\n",
			want: []string{"BOOKMARK @9 ready=false "},
		},
		"the API server's error": {
			text: `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure",` +
				`"message":"too old","reason":"Expired","code":410}}` + "\n",
			want: []string{"ERROR 410 too old"},
		},
		"half an event": {
			text: `{"type":"ADDED","object":{"apiVersion":"v1","ki`,
		},
		"no JSON": {
			text: "what?\n",
			want: []string{"ERROR 500 read an event: invalid character 'w' looking for beginning of value"},
		},
		"an unknown type": {
			text: `{"type":"MOVED","object":{}}` + "\n",
			want: []string{`ERROR 500 read an event: unknown event type "MOVED"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := received(t, test.text, nil)
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// An object that an apply has returned is not decoded again.
func TestStreamKnowsAnswers(t *testing.T) {
	known := &Object{Name: "known", ResourceVersion: "5"}
	recentlyApplied := func(name types.NamespacedName, uid types.UID, version string) *Object {
		if name == (types.NamespacedName{Namespace: "ns", Name: "a"}) && uid == "1" && version == "5" {
			return known
		}
		return nil
	}
	line := func(version string) string {
		return `{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"ns","uid":"1","resourceVersion":"` + version + `"}}}` + "\n"
	}
	got := strings.Join(received(t, line("5")+line("6"), recentlyApplied), ", ")
	if want := "ADDED known@5 ready=false , ADDED a@6 ready="; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s…", got, want)
	}
}

func TestStreamStops(t *testing.T) {
	body, feed := io.Pipe()
	seen := &observed{}
	s := &stream{
		body: body, cancel: func() { body.Close() }, limit: time.NewTimer(time.Hour), observer: seen,
		results: make(chan apiwatch.Event), stopped: make(chan struct{}),
	}
	go s.receive()
	s.Stop()
	s.Stop()
	if _, open := <-s.ResultChan(); open {
		t.Error("an event was received from an empty stream")
	}
	if _, err := feed.Write([]byte("x")); err == nil {
		t.Error("the body is still being read")
	}
	if _, ends := seen.counts(); !slices.Equal(ends, []string{errAbandoned.Error()}) {
		t.Errorf("the stream is reported to have ended with %q", ends)
	}
}

// observed records what a stream reports.
type observed struct {
	mu             sync.Mutex
	opened, events int
	ends           []string
}

func (o *observed) streamRequested(*stream) {}

func (o *observed) streamOpened() { o.count(&o.opened) }

func (o *observed) streamHeard() { o.count(&o.events) }

func (o *observed) count(what *int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*what++
}

func (o *observed) streamClosed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ends = append(o.ends, fmt.Sprint(err))
}

func (o *observed) counts() (events int, ends []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.events, slices.Clone(o.ends)
}

// A stream is ended at its limit, whatever the API server does.
func TestStreamLimit(t *testing.T) {
	const event = `{"type":"MODIFIED","object":{"metadata":{"name":"a","namespace":"ns","resourceVersion":"6"}}}` + "\n"
	const listed = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9",` +
		`"annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
	hang := func(r *http.Request) { <-r.Context().Done() }
	for name, test := range map[string]struct {
		reason string
		list   bool // the stream begins with a list
		serve  func(w http.ResponseWriter, r *http.Request)
		events int
		end    error
	}{
		"no answer": {
			reason: "the API server does not even send headers",
			serve:  func(_ http.ResponseWriter, r *http.Request) { hang(r) },
			end:    errSilent,
		},
		"not ended": {
			reason: "a proxy in between holds the connection open",
			serve:  func(w http.ResponseWriter, r *http.Request) { send(w, event); hang(r) },
			events: 1, end: errSilent,
		},
		"list without end": {
			reason: "the first list stops in the middle",
			list:   true,
			serve:  func(w http.ResponseWriter, r *http.Request) { send(w, event); hang(r) },
			events: 1, end: errSilent,
		},
		"quiet after the list": {
			reason: "its timeout is the API server's own, which is longer: this side ends it",
			list:   true,
			serve:  func(w http.ResponseWriter, r *http.Request) { send(w, event+listed); hang(r) },
			events: 2, end: errAbandoned,
		},
		"ended in time": {
			reason: "the normal case",
			serve:  func(w http.ResponseWriter, _ *http.Request) { send(w, event) },
			events: 1,
		},
		"an error": {
			serve: func(w http.ResponseWriter, _ *http.Request) {
				send(w, `{"type":"ERROR","object":{"kind":"Status","message":"too old","reason":"Expired","code":410}}`+"\n")
			},
			events: 1, end: errors.New("too old"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(test.serve))
			defer server.Close()
			s, err := newStreams(&rest.Config{Host: server.URL}, server.Client(), timing{
				stream: 100 * time.Millisecond, delayedEnd: 10 * time.Millisecond, pause: 100 * time.Millisecond,
			})
			if err != nil {
				t.Fatal(err)
			}
			seen := &observed{}
			nothing := func(types.NamespacedName, types.UID, string) *Object { return nil }
			watch, err := s.open(t.Context(), configMaps, metav1.ListOptions{SendInitialEvents: &test.list}, seen,
				decoder{recentlyApplied: nothing, trim: Trim})
			if err == nil {
				for range watch.ResultChan() {
				}
			}
			events, ends := seen.counts()
			if want := []string{fmt.Sprint(test.end)}; events != test.events || !slices.Equal(ends, want) {
				t.Errorf("%s: %d events, ended with %q; want %d, %q", test.reason, events, ends, test.events, want)
			}
		})
	}
}

func send(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	w.(http.Flusher).Flush()
}
