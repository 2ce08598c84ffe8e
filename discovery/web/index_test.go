package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"akri.sh/akri/discovery/web/details"
)

// indexOf returns an index of devices with an id, and a property of this size.
func indexOf(t *testing.T, count, bytes int) response {
	t.Helper()
	var items []map[string]string
	for i := range count {
		items = append(items, map[string]string{"id": fmt.Sprint(i), "url": "http://a/", "text": strings.Repeat("x", bytes)})
	}
	text, err := json.Marshal(items)
	if err != nil {
		t.Fatal(err)
	}
	return response{status: http.StatusOK, body: text}
}

// TestIndexBounds checks that what an index lists is bounded.
func TestIndexBounds(t *testing.T) {
	index := &details.Index{Address: "url", ID: "id", Properties: map[string]string{"A": "text", "B": "text"}}
	part := maxPropertiesBytes / maxIndexItems
	for name, tc := range map[string]struct{ count, bytes, found, rejected int }{
		"as many as are used":        {maxIndexItems, 1, maxIndexItems, 0},
		"more":                       {maxIndexItems + 2, 1, maxIndexItems, 2},
		"an equal part for each":     {maxIndexItems, part/2 - 1, maxIndexItems, 0},
		"more than that":             {maxIndexItems, part / 2, 0, maxIndexItems},
		"long values of few devices": {2, 2 * maxValueBytes, 2, 0},
	} {
		targets, rejected, err := targetsIn(index, indexOf(t, tc.count, tc.bytes))
		if err != nil || len(targets) != tc.found || rejected != tc.rejected {
			t.Errorf("%s: %d devices, %d rejected, %v; want %d and %d", name, len(targets), rejected, err, tc.found, tc.rejected)
		}
		for _, each := range targets {
			if want := min(tc.bytes, maxValueBytes); len(each.properties["A"]) != want {
				t.Fatalf("%s: a value of %d bytes, want %d", name, len(each.properties["A"]), want)
			}
		}
	}
	long := response{body: []byte(`[{"id": "` + strings.Repeat("x", maxIDBytes+1) + `", "url": "http://a/"}]`)}
	if targets, rejected, err := targetsIn(index, long); err != nil || len(targets) != 0 || rejected != 1 {
		t.Errorf("a long id: %v, %d rejected, %v", targets, rejected, err)
	}
}

// TestHeaders checks that headers are bounded, and that a small response is not one that
// decompresses to a large one.
func TestHeaders(t *testing.T) {
	device := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if encoding := r.Header.Get("Accept-Encoding"); encoding != "" {
			t.Errorf("the request accepts %s", encoding)
		}
		if r.URL.Path == "/long" {
			w.Header().Set("X-Long", strings.Repeat("x", 2*maxHeaderBytes))
		}
	})
	c := newTestClient(t)
	use := func(response) error { return nil }
	if err := c.get(t.Context(), device.URL, deviceKind, use); err != nil {
		t.Error(err)
	}
	if err := c.get(t.Context(), device.URL+"/long", deviceKind, use); err == nil {
		t.Error("long headers are read")
	}
}
