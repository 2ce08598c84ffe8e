package informers

import (
	"fmt"
	"io"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// received returns a summary of the events in a stream with the given content.
func received(t *testing.T, text string, answered func(types.NamespacedName, types.UID, string) *Object) []string {
	t.Helper()
	if answered == nil {
		answered = func(types.NamespacedName, types.UID, string) *Object { return nil }
	}
	s := &stream{
		body:    io.NopCloser(strings.NewReader(text)),
		results: make(chan apiwatch.Event),
		stopped: make(chan struct{}),
		decoder: decoder{answered: answered, trim: func(full *unstructured.Unstructured) *Object { return Trim(full) }},
	}
	go s.receive()
	var events []string
	for event := range s.ResultChan() {
		switch object := event.Object.(type) {
		case *Object:
			events = append(
				events,
				fmt.Sprintf("%s %s@%s ready=%v %s", event.Type, object.Name, object.ResourceVersion, object.Ready, object.Annotations["note"]),
			)
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
		"a bookmark": {
			text: `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1",` +
				`"metadata":{"resourceVersion":"9","annotations":{"note":"kept"}}}}` + "\n",
			want: []string{"BOOKMARK @9 ready=false kept"},
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
	known := &Object{ObjectMeta: metav1.ObjectMeta{Name: "known", ResourceVersion: "5"}}
	answered := func(name types.NamespacedName, uid types.UID, version string) *Object {
		if name == (types.NamespacedName{Namespace: "ns", Name: "a"}) && uid == "1" && version == "5" {
			return known
		}
		return nil
	}
	line := func(version string) string {
		return `{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"ns","uid":"1","resourceVersion":"` + version + `"}}}` + "\n"
	}
	got := strings.Join(received(t, line("5")+line("6"), answered), ", ")
	if want := "ADDED known@5 ready=false , ADDED a@6 ready="; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s…", got, want)
	}
}

func TestStreamStops(t *testing.T) {
	body, feed := io.Pipe()
	s := &stream{body: body, results: make(chan apiwatch.Event), stopped: make(chan struct{}), decoder: decoder{}}
	go s.receive()
	s.Stop()
	s.Stop()
	if _, open := <-s.ResultChan(); open {
		t.Error("an event was received from an empty stream")
	}
	if _, err := feed.Write([]byte("x")); err == nil {
		t.Error("the body is still being read")
	}
}
