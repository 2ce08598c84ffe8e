package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestGetWritesTheFirstLineOfEachResponse(t *testing.T) {
	clients := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		clients[r.RemoteAddr] = true
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "pod\nPATH=/bin\n")
	}))
	defer server.Close()
	var out strings.Builder
	if err := get(t.Context(), &out, "3", server.URL+"/"); err != nil {
		t.Fatal(err)
	}
	if out.String() != "pod\npod\npod\n" {
		t.Errorf("got %q", out.String())
	}
	if len(clients) != 3 {
		t.Errorf("3 requests used %d connections", len(clients))
	}
	if err := get(t.Context(), &out, "1", server.URL+"/missing"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a failed request: %v", err)
	}
}

func TestClientsRejectWrongArguments(t *testing.T) {
	for _, tc := range []struct {
		command string
		args    []string
		want    string
	}{
		{"get", nil, "usage: workload get COUNT URL"},
		{"get", []string{"1"}, "usage: workload get COUNT URL"},
		{"get", []string{"1", "http://svc/", "2"}, "usage: workload get COUNT URL"},
		{"get", []string{"many", "http://svc/"}, "the number of requests: "},
		{"get", []string{"1", "://"}, "missing protocol scheme"},
	} {
		if err := commands[tc.command](t.Context(), tc.args); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %q\n got %v\nwant %s", tc.command, tc.args, err, tc.want)
		}
	}
}

// TestRequestHasATimeout sends a request that nobody answers.
func TestRequestHasATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := newClient()
		if err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		defer far.Close()
		client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) { return near, nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if _, err := firstLine(ctx, client, "http://svc/"); err == nil || time.Since(began) != requestTimeout {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// TestFailedLookupIsNotAMissingHost checks that only a host that does not exist has no
// addresses.
func TestFailedLookupIsNotAMissingHost(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	if err := lookup(ctx, &out, "missing.invalid"); err == nil || !strings.Contains(err.Error(), "missing.invalid") || out.Len() > 0 {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestLookupWritesAddresses(t *testing.T) {
	var out strings.Builder
	// RFC 6761: names below invalid do not exist.
	err := lookup(t.Context(), &out, "127.0.0.1", "missing.invalid", "127.0.0.2")
	if err != nil || out.String() != "127.0.0.1 127.0.0.1\nmissing.invalid\n127.0.0.2 127.0.0.2\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}
