package instances

import (
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// interrupter stands between a store and the API server. While it holds requests, the
// store sees nothing of what happens.
type interrupter struct {
	next http.RoundTripper

	mu      sync.Mutex
	watches []io.Closer
	// held are the requests that wait until released is closed.
	held     func(*http.Request) bool
	released chan struct{}
	expired  bool // the next watch begins too long ago
}

func (i *interrupter) RoundTrip(r *http.Request) (*http.Response, error) {
	i.mu.Lock()
	held, released := i.held != nil && i.held(r), i.released
	i.mu.Unlock()
	if held {
		<-released
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !isWatch(r) {
		return i.next.RoundTrip(r)
	}
	if i.expired && r.URL.Query().Get("sendInitialEvents") == "" {
		i.expired = false
		return expiredResponse(r), nil
	}
	response, err := i.next.RoundTrip(r)
	if err == nil {
		i.watches = append(i.watches, response.Body)
	}
	return response, err
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

func expiredResponse(r *http.Request) *http.Response {
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old resource version","code":410}`
	return &http.Response{
		StatusCode: http.StatusGone, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}
}

// hold makes requests wait. It returns the function that lets them go.
func (i *interrupter) hold(held func(*http.Request) bool) (release func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	released := make(chan struct{})
	i.held, i.released = held, released
	return sync.OnceFunc(func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.released == released {
			i.held = nil
		}
		close(released)
	})
}

// cut ends the watches. The API server no longer has the events from which they would
// continue, so the store lists the Instances again.
func (i *interrupter) cut() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.expired = true
	for _, watch := range i.watches {
		watch.Close()
	}
	i.watches = nil
}

// An Instance that was deleted and created again while the watch was interrupted was
// deleted all the same: agents then wait until the other nodes have claimed their slots
// again.
func TestRecreatedWithoutAWatch(t *testing.T) {
	i := &interrupter{}
	f := newFixture(t, func(next http.RoundTripper) http.RoundTripper { i.next = next; return i })
	f.create()
	f.want("changed")
	release := i.hold(func(r *http.Request) bool { return isWatch(r) || path.Base(r.URL.Path) == "instances" })
	defer release()
	i.cut()
	f.remove()
	f.create()
	release()
	f.want("deleted")
	f.want("changed")
}

// What was written and reverted while the watch was interrupted is a reason to publish again:
// one of the two writes may be this node's.
func TestRevertedWithoutAWatch(t *testing.T) {
	i := &interrupter{}
	f := newFixture(t, func(next http.RoundTripper) http.RoundTripper { i.next = next; return i })
	f.create()
	f.patch(`{"spec":{"nodes":["node-a"]}}`)
	f.want("changed")
	f.want("changed")
	before := f.touched.Load()
	release := i.hold(func(r *http.Request) bool { return isWatch(r) || path.Base(r.URL.Path) == "instances" })
	defer release()
	i.cut()
	f.store.Keep(f.patch(`{"spec":{"capacity":2}}`))
	f.patch(`{"spec":{"capacity":1}}`)
	release()
	f.want("changed")
	if f.touched.Load() == before {
		t.Error("the Configuration was not touched")
	}
}

// An Instance may be created again before the store has read why it disappeared.
func TestRecreatedBeforeTheRead(t *testing.T) {
	i := &interrupter{}
	f := newFixture(t, func(next http.RoundTripper) http.RoundTripper { i.next = next; return i })
	f.create()
	f.want("changed")
	release := i.hold(func(r *http.Request) bool { return path.Base(r.URL.Path) == f.name.Name })
	defer release()
	f.remove()
	f.create()
	f.want("deleted")
	f.want("changed")
	release()
	f.patch(`{"spec":{"capacity":2}}`)
	f.want("changed")
}

// refuser refuses the first reads of the Instance.
type refuser struct {
	next  http.RoundTripper
	reads atomic.Int32
}

func (r *refuser) RoundTrip(request *http.Request) (*http.Response, error) {
	if path.Base(request.URL.Path) == "cam-1" && r.reads.Add(1) <= 2 {
		return nil, errors.New("connection refused")
	}
	return r.next.RoundTrip(request)
}

// An Instance that disappears is read until an answer says why.
func TestReadsAreRepeated(t *testing.T) {
	r := &refuser{}
	f := newFixture(t, func(next http.RoundTripper) http.RoundTripper { r.next = next; return r })
	f.create()
	f.want("changed")
	f.remove()
	f.want("deleted")
	if n := r.reads.Load(); n != 3 {
		t.Errorf("the Instance was read %d times, want 3", n)
	}
}
