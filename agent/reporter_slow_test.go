package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
)

// slowServer is an API server that takes up to delay to write the status of its only
// Configuration, and half of that to show the change on a watch. A real one that slow
// would be slow for everything else, too.
type slowServer struct {
	delay time.Duration
	watch func(object any)

	mu      sync.Mutex
	version int
	listed  []v0.DiscoveryFailure
	writes  int
}

// serve answers a server-side apply.
func (s *slowServer) serve(request *http.Request) (*http.Response, error) {
	var applied v0.Configuration
	if err := json.NewDecoder(request.Body).Decode(&applied); err != nil {
		return nil, err
	}
	time.Sleep(rand.N(s.delay))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	node := request.URL.Query().Get("fieldManager")[len("test."):]
	others := slices.DeleteFunc(slices.Clone(s.listed), func(failure v0.DiscoveryFailure) bool { return failure.Node == node })
	listed := append(others, applied.Status.DiscoveryFailures...)
	switch {
	case applied.ResourceVersion != fmt.Sprint(s.version):
		return respond(http.StatusConflict, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonConflict})
	case len(listed) > v0.MaxDiscoveryFailures:
		return respond(http.StatusUnprocessableEntity, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid})
	}
	s.version++
	s.listed = listed
	now := s.object()
	time.AfterFunc(s.delay/2, func() { s.watch(now) })
	return respond(http.StatusOK, &now.Configuration)
}

// object returns the Configuration. The caller holds mu.
func (s *slowServer) object() *cachedConfiguration {
	now := &cachedConfiguration{Configuration: v0.Configuration{
		TypeMeta:   metav1.TypeMeta{APIVersion: v0.GroupVersion.String(), Kind: v0.ConfigurationKind.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cam", ResourceVersion: fmt.Sprint(s.version)},
	}}
	now.Status.DiscoveryFailures = s.listed
	return now
}

// state returns the number of failures that are listed, and of writes so far.
func (s *slowServer) state() (listed, writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.listed), s.writes
}

// respond returns a response.
func respond(code int, object any) (*http.Response, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}

// A write waits, first for a random part of a second and after a conflict for longer. Nothing
// is written meanwhile, nor if the status shows the failures. If it is full, the wait is long.
func TestReportsAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &slowServer{delay: time.Nanosecond, watch: func(any) {}}
		client, err := dynamic.NewForConfig(&rest.Config{Host: "http://api.test", QPS: -1, Transport: apitest.RoundTripper(server.serve)})
		if err != nil {
			t.Fatal(err)
		}
		r := newReporter(client, "test.node", func(types.NamespacedName) int { return 0 }, slog.New(slog.DiscardHandler))
		stale, wanted := &server.object().Configuration, []v0.DiscoveryFailure{{Node: "node", Handler: "h", Message: "m"}}
		stale.ResourceVersion = "before"
		report := func(writes int, waits bool) (again time.Time) {
			t.Helper()
			again, err := r.report(t.Context(), stale, wanted)
			if _, sent := server.state(); err != nil || sent != writes || again.After(time.Now()) != waits {
				t.Errorf("%d writes, again at %s, %v; want %d writes, and to wait: %t", sent, again, err, writes, waits)
			}
			return again
		}
		report(0, true)
		time.Sleep(time.Until(report(0, true)))
		report(1, true) // a conflict
		time.Sleep(time.Until(report(1, true)))
		stale.ResourceVersion = "0"
		report(2, false)
		stale.Status.DiscoveryFailures = wanted
		report(2, false)

		stale.ResourceVersion, stale.Status.DiscoveryFailures = fmt.Sprint(server.version), nil
		for i := range v0.MaxDiscoveryFailures {
			server.listed = append(server.listed, v0.DiscoveryFailure{Node: fmt.Sprint(i)})
		}
		time.Sleep(time.Until(report(2, true)))
		if again := report(3, true); time.Until(again) < fullDelay { // the status is full
			t.Errorf("the next attempt is in %s", time.Until(again))
		}
		synctest.Wait()
	})
}

// Hundreds of agents fail at the same time, as an overloaded API server takes seconds for
// each write. They do not keep it busy: most of them give way.
func TestManyFailuresOnASlowServer(t *testing.T) {
	const nodes, within = 400, 10 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		server := &slowServer{delay: 3 * time.Second}
		client, err := dynamic.NewForConfig(&rest.Config{Host: "http://api.test", QPS: -1, Transport: apitest.RoundTripper(server.serve)})
		if err != nil {
			t.Fatal(err)
		}
		status := newSharedStatus(client, nodes)
		server.watch = status.observe
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		await := func(listed int) {
			t.Helper()
			began := time.Now()
			for have := -1; have != listed; time.Sleep(time.Second) {
				if have, _ = server.state(); have != listed && time.Since(began) > within {
					t.Fatalf("%d failures are listed after %v, want %d", have, within, listed)
				}
			}
			t.Logf("%d failures are listed after %v", listed, time.Since(began).Round(time.Second))
		}

		for _, n := range status.nodes {
			n.failing.Store(true)
			running.Go(func() { n.run(ctx, t) })
		}
		status.observe(server.object())
		await(v0.MaxDiscoveryFailures)
		_, writes := server.state()
		t.Logf("%d writes of %d nodes", writes, nodes)
		if writes > 10*nodes {
			t.Errorf("%d writes of %d nodes, want at most ten each", writes, nodes)
		}
		for _, n := range status.nodes {
			n.set(false)
		}
		await(0)
	})
}
