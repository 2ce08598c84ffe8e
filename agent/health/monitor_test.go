package health

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		monitor := &Monitor{}
		worker, other := monitor.Loop("worker", time.Minute), monitor.Loop("other", time.Hour)
		check := func(moment string, want ...string) {
			t.Helper()
			err := monitor.Check()
			if (err != nil) != (len(want) > 0) {
				t.Errorf("%s: %v, want %q", moment, err, want)
			}
			for _, part := range want {
				if err != nil && !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %v, want %q", moment, err, part)
				}
			}
		}
		time.Sleep(time.Hour)
		check("without work")
		worker.Beat()
		other.Beat()
		time.Sleep(time.Minute)
		check("at the limit")
		worker.Beat()
		time.Sleep(time.Minute)
		check("with progress")
		time.Sleep(time.Second)
		check("without progress", "worker (no progress for 1m1s, the limit is 1m0s)")
		time.Sleep(time.Hour)
		check("both", "worker (", "other (")
		worker.Rest()
		other.Rest()
		check("after the work")
		var nobody *Loop
		nobody.Beat()
		nobody.Rest()
	})
}

func TestRequestsAreProgress(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	worker := (&Monitor{}).Loop("worker", time.Minute)
	client := &http.Client{Transport: Transport(http.DefaultTransport)}
	for _, l := range []*Loop{nil, worker} {
		ctx := t.Context()
		if l != nil {
			ctx = With(ctx, l)
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if made := worker.progress.Load() >= 0; made != (l == worker) {
			t.Errorf("a request of %v is progress: %t", l, made)
		}
	}
}
