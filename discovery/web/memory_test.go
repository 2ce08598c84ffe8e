package web

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

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

// TestOneAtATime checks that the memory for decoding is needed once, however many responses
// have been received: eight large ones, or some hundred small ones, would exceed the limit.
func TestOneAtATime(t *testing.T) {
	const count = 8
	var sent, used, most atomic.Int32
	device := newSite(t, func(http.ResponseWriter, *http.Request) { sent.Add(1) })
	var group sync.WaitGroup
	for range count {
		group.Go(func() {
			c, err := newClient(&details.Details{TimeoutSeconds: 60}, nil, Networks{})
			if err != nil {
				t.Error(err)
				return
			}
			defer c.close()
			err = c.get(t.Context(), device.URL, func(response) error {
				now := used.Add(1)
				defer used.Add(-1)
				for sent.Load() < count { // the deadline is the test's
					runtime.Gosched()
				}
				for range 1000 {
					most.Store(max(most.Load(), now))
					runtime.Gosched()
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if most.Load() != 1 {
		t.Errorf("%d were used at the same time", most.Load())
	}
}

// TestTooManyValues checks that a response is not decoded that would take many times its
// size.
func TestTooManyValues(t *testing.T) {
	for what, text := range map[string]string{
		"numbers": `{"a":1,"b":[` + strings.Repeat("0,", maxJSONValues) + "0]}",
		"lists":   `{"a":1,"b":[` + strings.Repeat("[],", maxJSONValues) + "[]]}",
		"keys":    `{"a":1,"b":{` + strings.Repeat(`"":0,`, maxJSONValues) + `"":0}}`,
	} {
		if found := discover(t, urlsOf(newSite(t, body(text)), 1), nil).next(); len(found) != 0 {
			t.Errorf("%s: found %+v", what, found)
		}
	}
	lines := newSite(t, body(strings.Repeat("a\n", maxJSONValues+2)))
	if err := discover(t, lines.URL, nil).failure(); !strings.Contains(err.Error(), "too large: 50001 lines") {
		t.Errorf("an index of many lines: %v", err)
	}
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
		if found := discover(t, wanted, nil).next(); len(found) != want {
			t.Errorf("found %d of %d devices with 400 KiB each, want %d", len(found), devices, want)
		}
	}
}

// TestOthersDevicesHang checks that devices of other Configurations that do not answer, and
// take all shared places, do not keep a Configuration from finding its own.
func TestOthersDevicesHang(t *testing.T) {
	others := sharedRequests.Share()
	for range maxSharedRequests {
		leave, err := others.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
	}
	if found := discover(t, urlsOf(newSite(t, body(`{"a": 1}`)), 3), nil).next(); len(found) != 3 {
		t.Errorf("found %d devices", len(found))
	}
}
