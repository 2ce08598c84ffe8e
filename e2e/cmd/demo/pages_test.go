package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// newPage serves a page. The answers have numbers from 1.
func newPage(t *testing.T, answer func(w http.ResponseWriter, number int32)) *openPage {
	t.Helper()
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, requests.Add(1)) }))
	t.Cleanup(server.Close)
	return &openPage{
		page:    page{Title: "camera", Shows: regexp.MustCompile(`<h1>([^<]+)</h1>`)},
		service: "cameras-1e44f9", address: strings.TrimPrefix(server.URL, "http://"),
	}
}

// write writes an answer, or the status 503 if it is empty.
func write(w http.ResponseWriter, answer string) {
	if answer == "" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write([]byte(answer))
}

// TestPagesAreShownWhenTheyAnswer checks that a page is printed with the name of its device,
// even if the broker answers a moment later than it is ready, and knows the device later still.
func TestPagesAreShownWhenTheyAnswer(t *testing.T) {
	for want, test := range map[string]struct {
		title   string
		shows   *regexp.Regexp
		answers [3]string
	}{
		"camera hall & door": {"camera", regexp.MustCompile(`<h1>([^<]+)</h1>`), [3]string{"", "<h1></h1>", "<h1>hall &amp; door</h1>"}},
		"metrics":            {"metrics", regexp.MustCompile(`(?m)^metric\{`), [3]string{"", "# metric{}", "# HELP metric\nmetric{} 1"}},
		"all cameras":        {"all cameras", nil, [3]string{"", "", "a page"}},
	} {
		p := newPage(t, func(w http.ResponseWriter, number int32) { write(w, test.answers[number-1]) })
		p.Title, p.Shows = test.title, test.shows
		awaitPages(t.Context(), []*openPage{p})
		if got := p.describe(); got != "http://"+p.address+"/  "+want+" (Service cameras-1e44f9)" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestPagesThatDoNotAnswer checks that the demo says which page does not answer and why,
// and not only that time is up.
func TestPagesThatDoNotAnswer(t *testing.T) {
	for want, answer := range map[string]func(http.ResponseWriter){
		"it answers with status 503":  func(w http.ResponseWriter) { write(w, "") },
		"it does not show its device": func(w http.ResponseWriter) { write(w, "<h1></h1>") },
		"EOF":                         func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		p := newPage(t, func(w http.ResponseWriter, number int32) {
			if number > 1 {
				cancel() // the first answer has been read
			}
			answer(w)
		})
		p.name, p.problem = p.await(ctx)
		if got := p.describe(); !strings.HasSuffix(got, "/  camera (Service cameras-1e44f9): not ready yet: "+want) {
			t.Errorf("got %q, want it to end with %q", got, want)
		}
		cancel()
	}
}
