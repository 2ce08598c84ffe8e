package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// applied is a line of an API server's audit log.
const applied = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete",` +
	`"requestURI":"/api/v1/namespaces/bench/configmaps/dev-1?fieldManager=akri-controller&force=false","verb":"patch",` +
	`"user":{"username":"admin"},"sourceIPs":["127.0.0.1"],` +
	`"userAgent":"akri-controller/v0.0.0 (linux/amd64) kubernetes/$Format",` +
	`"objectRef":{"resource":"configmaps","namespace":"bench","name":"dev-1","apiVersion":"v1"},` +
	`"responseStatus":{"metadata":{},"code":201},` +
	`"requestReceivedTimestamp":"2026-01-02T03:04:05.000001Z","stageTimestamp":"2026-01-02T03:04:05.002001Z"}`

// instant is the end of a line of a request that took no time.
const instant = `"requestReceivedTimestamp":"2026-01-02T03:04:05.000001Z","stageTimestamp":"2026-01-02T03:04:05.000001Z"}`

func TestParseRequest(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 1000, time.UTC)
	cases := map[string]struct {
		line  string
		want  auditLine
		write bool // expected of isWrite
	}{
		"an apply that creates": {applied, auditLine{
			Verb: "patch", Agent: "akri-controller", Version: "v0.0.0", Resource: "configmaps", Namespace: "bench", Name: "dev-1",
			Code: 201, Began: at, Done: at.Add(2 * time.Millisecond),
		}, true},
		"a status": {`{"verb":"patch","userAgent":"bare","objectRef":{"resource":"instances","subresource":"status"},` + instant,
			auditLine{Verb: "patch", Agent: "bare", Resource: "instances/status", Began: at, Done: at}, true},
		"no resource": {`{"verb":"get","requestURI":"/api?timeout=32s","userAgent":"a/b/c",` + instant,
			auditLine{Verb: "get", Agent: "a", Version: "b", Resource: "/api", Began: at, Done: at}, false},
	}
	for name, c := range cases {
		got, err := parseRequest([]byte(c.line))
		if err != nil || got != c.want || got.isWrite() != c.write {
			t.Errorf("%s: got %+v (write %t), %v, want %+v", name, got, got.isWrite(), err, c.want)
		}
	}
	if _, err := parseRequest([]byte(`{"verb":`)); err == nil {
		t.Error("half a line was parsed without an error")
	}
}

// The file does not exist at first, and then grows by parts of lines.
func TestFollowLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	log := followLog(t.Context(), path)
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, part := range []string{applied[:50], applied[50:] + "\n" + applied, "\n"} {
		if _, err := file.WriteString(part); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // lets the reader see the part alone; the result does not depend on it
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for log.mark() < 2 {
		if !sleep(ctx, time.Millisecond) {
			t.Fatal("the two lines were not read")
		}
	}
	all, err := log.since(0)
	if err != nil || len(all) != 2 || all[0] != all[1] {
		t.Errorf("read %v, %v", all, err)
	}
	if got, want := tally(all), (map[string]int{"patch configmaps": 2}); !maps.Equal(got, want) {
		t.Errorf("tally %v, want %v", got, want)
	}
	mine, err := log.awaitQuiet(ctx, 1, "akri-controller", time.Millisecond)
	if err != nil || len(mine) != 1 {
		t.Errorf("after the mark: got %v, %v, want one request", mine, err)
	}
	if others, err := log.awaitQuiet(ctx, 0, "bare", time.Millisecond); err != nil || len(others) != 0 {
		t.Errorf("another agent: got %v, %v, want nothing", others, err)
	}
}
