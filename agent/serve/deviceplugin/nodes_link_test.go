package deviceplugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// memoryLink is the connection of one node to the API server. It delays requests, and
// some it loses, or their answers; a lost request may still arrive later. What happens to
// a request depends on the seed, on what it requests and on how many such requests were
// before it, not on the order of requests that are sent at the same time.
type memoryLink struct {
	api     *memoryAPI
	running *sync.WaitGroup // requests that arrive later
	seed    uint64

	mu     sync.Mutex
	sent   map[string]uint64 // requests, by what they request
	down   bool
	faults bool
}

// maxLate bounds how late a lost request may arrive.
const maxLate = 5 * time.Second

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
	fmt.Fprint(digest, kind, " ", l.sent[kind]) //nolint:errcheck // a hash never fails
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
	l.down, l.faults = down, faults
}

// lag returns how far a watch is behind.
func (l *memoryLink) lag() time.Duration {
	return time.Duration(l.random("watch").Int64N(int64(20 * time.Millisecond)))
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
		<-ctx.Done()
		return nil, ctx.Err()
	case "late":
		l.arrive(r, body, f.late)
		<-ctx.Done()
		return nil, ctx.Err()
	case "error":
		return respondError(http.StatusInternalServerError), nil
	case "conflict":
		return respondError(http.StatusConflict), nil
	}
	response := l.api.serve(r, body, l.lag)
	if f.kind == "unanswered" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := pause(ctx, f.after); err != nil {
		return nil, err
	}
	return response, nil
}

// arrive lets a request arrive late. Nobody waits for the answer.
func (l *memoryLink) arrive(r *http.Request, body []byte, late time.Duration) {
	if r.URL.Query().Get("watch") != "" {
		return
	}
	l.running.Go(func() {
		time.Sleep(late)
		l.api.serve(r.WithContext(context.Background()), body, l.lag)
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
	ctx  context.Context
	api  *memoryAPI
	next int // index in history
	lag  func() time.Duration
	text bytes.Buffer
}

// start writes the initial events.
func (w *memoryWatch) start() {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	for _, instance := range w.api.objects {
		w.write(memoryEvent{"ADDED", instance})
	}
	w.next = w.api.version
	w.write(memoryEvent{"BOOKMARK", &v0.Instance{
		TypeMeta: instanceType,
		ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(w.next), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		},
	}})
}

func (w *memoryWatch) write(event memoryEvent) {
	if err := json.NewEncoder(&w.text).Encode(event); err != nil {
		panic(err)
	}
}

// Read implements [io.Reader].
func (w *memoryWatch) Read(p []byte) (int, error) {
	for w.text.Len() == 0 {
		w.api.mu.Lock()
		grown := w.api.grown
		for ; w.next < len(w.api.history); w.next++ {
			w.write(w.api.history[w.next])
		}
		w.api.mu.Unlock()
		if w.text.Len() > 0 {
			break
		}
		select {
		case <-grown:
			// A watch is behind; some events arrive together.
			if err := pause(w.ctx, w.lag()); err != nil {
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
