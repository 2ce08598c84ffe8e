package web

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"akri.sh/akri/discovery/web/details"
)

// urlsOf returns discoveryDetails with some devices of a site.
func urlsOf(s *site, count int) string {
	var urls []string
	for i := range count {
		urls = append(urls, fmt.Sprintf("%s/%d", s.URL, i))
	}
	return "{urls: [" + strings.Join(urls, ", ") + "], timeoutSeconds: 60, intervalSeconds: 1, properties: {A: a}}"
}

// TestManyProperties checks that the list of a Configuration's devices is bounded.
func TestManyProperties(t *testing.T) {
	var properties []string
	for i := range 100 {
		properties = append(properties, fmt.Sprintf("P%d: a", i))
	}
	long := body(`{"a": "` + strings.Repeat("x", maxValueBytes) + `"}`)
	all := ", properties: {" + strings.Join(properties, ", ") + "}"
	for devices, want := range map[int]int{4: 4, 40: 0} {
		wanted := strings.Replace(urlsOf(newSite(t, long), devices), ", properties: {A: a}", all, 1)
		if found := discover(t, wanted, nil).Next(); len(found) != want {
			t.Errorf("found %d of %d devices with 400 KiB each, want %d", len(found), devices, want)
		}
	}
}

// TestOthersDevicesHang checks that the devices of another Configuration, more than the
// handler requests at the same time, do not keep a Configuration from finding its own.
func TestOthersDevicesHang(t *testing.T) {
	hang := make(chan struct{})
	var requests atomic.Int32
	var urls []string
	for range 2 * sharedPlaces / maxHostRequests {
		others := newSite(t, func(http.ResponseWriter, *http.Request) {
			requests.Add(1)
			<-hang
		})
		for i := range maxHostRequests {
			urls = append(urls, fmt.Sprintf("%s/%d", others.URL, i))
		}
	}
	t.Cleanup(func() { close(hang) })
	discover(t, "{urls: ["+strings.Join(urls, ", ")+"], timeoutSeconds: 60}", nil)
	for began := time.Now(); requests.Load() < maxRequests; time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("%d requests, want %d", requests.Load(), maxRequests)
		}
	}
	if found := discover(t, urlsOf(newSite(t, body(`{"a": 1}`)), 3), nil).Next(); len(found) != 3 {
		t.Errorf("found %d devices", len(found))
	}
	if n := requests.Load(); n != maxRequests {
		t.Errorf("%d requests at the same time for one Configuration, want %d", n, maxRequests)
	}
}

// TestOneHost checks that the requests to a host are bounded.
func TestOneHost(t *testing.T) {
	var ongoing, most atomic.Int32
	gateway := newSite(t, func(http.ResponseWriter, *http.Request) {
		ongoing.Add(1)
		defer ongoing.Add(-1)
		for range 1000 {
			runtime.Gosched() // others would arrive meanwhile
			for now, old := ongoing.Load(), most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
		}
	})
	wanted := strings.Replace(urlsOf(gateway, maxRequests), ", properties: {A: a}", "", 1)
	if found := discover(t, wanted, nil).Next(); len(found) != maxRequests {
		t.Errorf("found %d devices, want %d", len(found), maxRequests)
	}
	if n := most.Load(); n > maxHostRequests {
		t.Errorf("%d requests to a host at the same time, want %d", n, maxHostRequests)
	}
}

// newTestClient returns a client for one test.
func newTestClient(t *testing.T) *client {
	t.Helper()
	c, err := newClient(&details.Details{TimeoutSeconds: 1}, nil, Networks{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// TestWaitForOthers checks that the time that a request waits for others is not the device's.
func TestWaitForOthers(t *testing.T) {
	if err := shared.Acquire(t.Context(), sharedPlaces); err != nil {
		t.Fatal(err)
	}
	c := newTestClient(t)
	var released atomic.Bool
	time.AfterFunc(3*c.timeout/2, func() {
		released.Store(true)
		shared.Release(sharedPlaces)
	})
	device := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
		if !released.Load() {
			t.Error("requested while others have all of the memory")
		}
		fmt.Fprint(w, strings.Repeat("x", int(deviceKind.maxBytes)))
	})
	size := 0
	err := c.get(t.Context(), device.URL, deviceKind, func(answer response) error {
		if shared.TryAcquire(sharedPlaces) {
			t.Error("others may use the memory of the response")
		}
		size = len(answer.body)
		return nil
	})
	if err != nil || size != int(deviceKind.maxBytes) {
		t.Errorf("got %d bytes, and %v", size, err)
	}
}

// TestEndlessResponses checks the reasons of a device that does not answer in time, and of one
// whose answer does not end: slowly, or as fast as it can.
func TestEndlessResponses(t *testing.T) {
	hang := make(chan struct{})
	device := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/begins":
			fmt.Fprint(w, "{")
			_ = http.NewResponseController(w).Flush() // the test fails without
		case "/floods":
			for part := bytes.Repeat([]byte(" "), 1<<16); ; {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		}
		<-hang
	})
	t.Cleanup(func() { close(hang) })
	c := newTestClient(t)
	for path, want := range map[string]string{"/": "timeout", "/begins": "timeout", "/floods": "too_large"} {
		err := c.get(t.Context(), device.URL+path, deviceKind, func(answer response) error {
			if len(answer.body) > int(deviceKind.maxBytes)+1 {
				t.Errorf("%s: read %d bytes", path, len(answer.body))
			}
			_, err := answer.json()
			return err
		})
		if err == nil || reasonOf(err) != want {
			t.Errorf("%s: %v has the reason %q, want %q", path, err, reasonOf(err), want)
		}
	}
}
