package deviceplugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	v0 "akri.sh/akri/api/v0"
)

// memoryLink is the connection of one node to the API server. It delays requests, and
// some it loses, or their answers; a lost request may still arrive later. What happens to
// a request depends on the seed, on what it requests and on how many such requests were
// before it, not on the order of requests that are sent at the same time.
type memoryLink struct {
	node    string
	api     *memoryAPI
	running *sync.WaitGroup // requests that arrive later
	seed    uint64

	mu     sync.Mutex
	sent   map[string]uint64 // requests, by what they request
	down   bool
	faults bool
	calmAt time.Time // since when requests succeed
	// refusal is the status with which writes of Instances are refused, until a time. That
	// happens once: agents repeat such writes with a delay that becomes too long.
	refusal      int
	refusedUntil time.Time
}

const (
	// maxLate bounds how late a lost request may arrive.
	maxLate = 5 * time.Second
	// maxLag bounds how far a watch is behind.
	maxLag = 2 * time.Second
	// maxSilence is how long client-go waits for an answer if its caller does not say.
	maxSilence = 45 * time.Second
	// maxRefusal bounds how long writes are refused.
	maxRefusal = 20 * time.Second
)

var errLink = errors.New("connection reset by peer")

// fault is what happens to one request.
type fault struct {
	before, after, late time.Duration
	kind                string
	// lands means that the request arrives although its sender has crashed.
	lands bool
}

// random returns a source of random numbers for the next request of a kind.
func (l *memoryLink) random(kind string) *rand.Rand {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[kind]++
	digest := fnv.New64a()
	fmt.Fprint(digest, kind, " ", l.sent[kind])
	return rand.New(rand.NewPCG(l.seed, digest.Sum64()))
}

func (l *memoryLink) draw(r *http.Request) fault {
	random := l.random(r.Method + " " + r.URL.String())
	up := func(limit time.Duration) time.Duration { return time.Duration(random.Int64N(int64(limit))) }
	f := fault{before: up(5 * time.Millisecond), after: up(5 * time.Millisecond), late: up(maxLate), lands: random.IntN(2) == 0}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.down:
		f.kind = "refused"
	case l.faults && random.IntN(3) == 0:
		f.kind = []string{"refused", "hung", "late", "late", "late", "unanswered", "error", "conflict", "slow"}[random.IntN(9)]
	}
	if f.kind == "slow" {
		f.before, f.after = up(time.Second), up(time.Second)
	}
	return f
}

func (l *memoryLink) set(down, faults bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if (l.down || l.faults) && !down && !faults {
		l.calmAt = time.Now()
	}
	l.down, l.faults = down, faults
}

// refuse lets the API server refuse writes of Instances for some time.
func (l *memoryLink) refuse(status int, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusal == 0 {
		l.refusal, l.refusedUntil = status, time.Now().Add(d)
	}
}

// refused returns the status with which a request is refused, or 0.
func (l *memoryLink) refused(r *http.Request) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/events") || !time.Now().Before(l.refusedUntil) {
		return 0
	}
	return l.refusal
}

// isDown reports whether no request succeeds.
func (l *memoryLink) isDown() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down
}

// troubled reports whether requests fail, or have failed so shortly before that what the
// agent knows may be old.
func (l *memoryLink) troubled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	since := l.calmAt
	if l.refusedUntil.After(since) {
		since = l.refusedUntil
	}
	return l.down || l.faults || !since.IsZero() && time.Since(since) < maxRewatch
}

// lag returns how far a watch is behind, sometimes by far.
func (l *memoryLink) lag() time.Duration {
	random := l.random("watch")
	if random.IntN(20) == 0 {
		return time.Duration(random.Int64N(int64(maxLag)))
	}
	return time.Duration(random.Int64N(int64(20 * time.Millisecond)))
}

// connection is the link as one agent uses it, until it crashes.
type connection struct {
	*memoryLink
	alive context.Context
}

// RoundTrip implements [http.RoundTripper].
func (l connection) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	f := l.draw(r)
	if l.alive.Err() != nil {
		return nil, errLink
	}
	ctx, cancel := context.WithCancel(r.Context())
	context.AfterFunc(l.alive, cancel)
	r = r.WithContext(ctx)
	if r.URL.Query().Get("watch") != "" && f.kind != "refused" && f.kind != "slow" {
		f.kind = "" // a hung connection ends after some time, which is no different
	}
	if err := pause(ctx, f.before); err != nil {
		if l.alive.Err() != nil && f.lands {
			l.arrive(r, body, f.late)
		}
		return nil, err
	}
	switch f.kind {
	case "refused":
		return nil, errLink
	case "hung":
		return nil, silence(ctx)
	case "late":
		l.arrive(r, body, f.late)
		return nil, silence(ctx)
	case "error":
		return respondError(http.StatusInternalServerError), nil
	case "conflict":
		return respondError(http.StatusConflict), nil
	}
	if status := l.refused(r); status != 0 {
		return respondError(status), nil
	}
	response := l.api.serve(l.memoryLink, r, body)
	if f.kind == "unanswered" {
		return nil, silence(ctx)
	}
	if err := pause(ctx, f.after); err != nil {
		return nil, err
	}
	return response, nil
}

// silence waits for an answer that does not come, and returns why the wait ended: client-go
// notices that a connection is dead.
func silence(ctx context.Context) error {
	if err := pause(ctx, maxSilence); err != nil {
		return err
	}
	return errLink
}

// arrive lets a request arrive late. Nobody waits for the answer.
func (l *memoryLink) arrive(r *http.Request, body []byte, late time.Duration) {
	if r.URL.Query().Get("watch") != "" {
		return
	}
	l.running.Go(func() {
		time.Sleep(late)
		l.api.serve(l, r.WithContext(context.Background()), body)
	})
}

// pause waits, or returns the reason why ctx was done first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// memoryWatch is the body of a watch.
type memoryWatch struct {
	ctx      context.Context
	link     *memoryLink
	pods     bool // of the node, instead of Instances
	selector labels.Selector
	next     int // index in history
	text     bytes.Buffer
}

func newMemoryWatch(r *http.Request, l *memoryLink) *memoryWatch {
	query := r.URL.Query()
	selector, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		panic(err)
	}
	w := &memoryWatch{ctx: r.Context(), link: l, pods: path.Base(r.URL.Path) == "pods", selector: selector}
	w.next, _ = strconv.Atoi(query.Get("resourceVersion"))
	if query.Get("sendInitialEvents") == "true" {
		w.start()
	}
	return w
}

// start writes the initial events.
func (w *memoryWatch) start() {
	api := w.link.api
	api.mu.Lock()
	defer api.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(api.objects)) {
		if instance := api.objects[name]; w.shows(instance) {
			w.write(watch.Added, instance)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(api.pods)) {
		if pod := api.pods[uid]; w.shows(pod) {
			w.write(watch.Added, pod)
		}
	}
	w.next = api.version
	end := metav1.ObjectMeta{
		ResourceVersion: strconv.Itoa(w.next), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}
	if w.pods {
		w.write(watch.Bookmark, &corev1.Pod{TypeMeta: podType, ObjectMeta: end})
	} else {
		w.write(watch.Bookmark, &v0.Instance{TypeMeta: instanceType, ObjectMeta: end})
	}
}

// shows reports whether the watch selects an object, which may be nil.
func (w *memoryWatch) shows(object metav1.Object) bool {
	switch o := object.(type) {
	case *v0.Instance:
		return !w.pods && w.selector.Matches(labels.Set(o.Labels))
	case *corev1.Pod:
		return w.pods && o.Spec.NodeName == w.link.node
	}
	return false
}

// follow writes what a change is to this watch: an object that it no longer selects is
// deleted.
func (w *memoryWatch) follow(event memoryEvent) {
	switch before, after := w.shows(event.before), w.shows(event.after); {
	case before && after:
		w.write(watch.Modified, event.after)
	case after:
		w.write(watch.Added, event.after)
	case before:
		last := event.before
		if instance, ok := last.(*v0.Instance); ok {
			last = instance.DeepCopy()
			last.SetResourceVersion(strconv.Itoa(event.version))
		}
		w.write(watch.Deleted, last)
	}
}

func (w *memoryWatch) write(kind watch.EventType, object any) {
	if err := json.NewEncoder(&w.text).Encode(map[string]any{"type": kind, "object": object}); err != nil {
		panic(err)
	}
}

// Read implements [io.Reader].
func (w *memoryWatch) Read(p []byte) (int, error) {
	api := w.link.api
	for w.text.Len() == 0 {
		api.mu.Lock()
		grown := api.grown
		for ; w.next < len(api.history); w.next++ {
			w.follow(api.history[w.next])
		}
		api.mu.Unlock()
		if w.text.Len() > 0 {
			break
		}
		select {
		case <-grown:
			// A watch is behind; some events arrive together.
			if err := pause(w.ctx, w.link.lag()); err != nil {
				return 0, err
			}
		case <-w.ctx.Done():
			return 0, w.ctx.Err()
		}
	}
	return w.text.Read(p)
}

// Close implements [io.Closer].
func (w *memoryWatch) Close() error { return nil }
