package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery/web/details"
)

// awaited returns the results of targets at these hosts that have not been requested.
func awaited(hosts ...string) []result {
	var results []result
	for i, host := range hosts {
		results = append(results, result{target: target{url: fmt.Sprintf("http://%s/%d", host, i)}, err: errAwaited})
	}
	return results
}

// takeAll takes targets until none may be requested, and returns the functions that end
// their requests.
func takeAll(q *queue) (ends []func(timedOut bool)) {
	for {
		_, end, ok := q.take()
		if !ok {
			return ends
		}
		ends = append(ends, end)
	}
}

func TestQueue(t *testing.T) {
	const count = 10
	hosts := strings.Fields(strings.Repeat("gateway ", count) + "other")
	q := newQueue(append(awaited(hosts...), result{target: target{url: "http://other/answered"}}))
	first := takeAll(q)
	if len(first) != maxHostRequests+1 {
		t.Fatalf("%d requests at first, want %d to the gateway and one to the other host", len(first), maxHostRequests)
	}
	first[0](false)
	second := takeAll(q)
	if len(second) != 1 {
		t.Errorf("%d requests after an answer, want one", len(second))
	}
	first[1](true)
	third := takeAll(q)
	if len(third) != 2 {
		t.Errorf("%d requests after one has timed out, want two", len(third))
	}
	first[2](false)
	first[3](false)
	rest := takeAll(q)
	if total := len(first) + len(second) + len(third) + len(rest); total != count {
		t.Errorf("%d requests before the last, want %d", total, count)
	}
	for _, end := range slices.Concat(second, third, rest) {
		end(false)
	}
	if !q.wait() {
		t.Error("the last target is forgotten")
	}
	if last := takeAll(q); len(last) != 1 || q.wait() {
		t.Errorf("%d requests at the end, want one", len(last))
	}
}

// TestHangingDevices has devices behind a gateway that accept requests and do not answer:
// as many as there may be requests to a host.
func TestHangingDevices(t *testing.T) {
	const healthy = 28
	hang := make(chan struct{})
	gateway := newSite(t, func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/hangs") {
			<-hang
		}
	})
	t.Cleanup(func() { close(hang) })
	var urls []string
	for i := range maxHostRequests {
		urls = append(urls, fmt.Sprintf("%s/hangs/%d", gateway.URL, i))
	}
	for i := range healthy {
		urls = append(urls, fmt.Sprintf("%s/%d", gateway.URL, i))
	}
	d := discover(t, "{urls: ["+strings.Join(urls, ", ")+"], timeoutSeconds: 2, misses: 1}", nil)
	if found := d.next(); len(found) != healthy {
		t.Errorf("found %d devices, want %d", len(found), healthy)
	}
}

// TestWaitForAPlace checks that the time that a large response waits for others is not the
// device's.
func TestWaitForAPlace(t *testing.T) {
	others := largeResponses.Share()
	var leave []func()
	for range maxLargeResponses {
		release, err := others.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, release)
	}
	device := newSite(t, body(strings.Repeat("x", 8*maxSmallBytes)))
	c, err := newClient(&details.Details{TimeoutSeconds: 1}, nil, Networks{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	time.AfterFunc(3*c.timeout/2, func() {
		for _, release := range leave {
			release()
		}
	})
	size := 0
	err = c.get(t.Context(), device.URL, func(r response) error { size = len(r.text); return nil })
	if err != nil || size != 8*maxSmallBytes {
		t.Errorf("got %d bytes, and %v", size, err)
	}
}

// TestTimeout checks the reason of a device that does not answer in time, or whose answer
// does not end.
func TestTimeout(t *testing.T) {
	hang := make(chan struct{})
	device := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/begins" {
			fmt.Fprint(w, "{")
			_ = http.NewResponseController(w).Flush() // the test fails without
		}
		<-hang
	})
	t.Cleanup(func() { close(hang) })
	c, err := newClient(&details.Details{TimeoutSeconds: 1}, nil, Networks{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, path := range []string{"/", "/begins"} {
		err := c.get(t.Context(), device.URL+path, func(response) error { return nil })
		if err == nil || reasonOf(err) != reasonTimeout {
			t.Errorf("%s: %v has the reason %q", path, err, reasonOf(err))
		}
	}
}
