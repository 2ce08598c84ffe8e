package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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

// instant is the end of a line of a request without an object.
const instant = `"stageTimestamp":"2026-01-02T03:04:05.002001Z"}`

func TestParseRequest(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 2001000, time.UTC)
	cases := map[string]struct {
		line  string
		want  auditLine
		write bool // expected of isWrite
	}{
		"an apply that creates": {applied, auditLine{
			Verb: "patch", Agent: controllerName, Resource: "configmaps", Name: "dev-1", Code: 201, Done: at,
		}, true},
		"a status": {`{"verb":"patch","userAgent":"bare","objectRef":{"resource":"instances","subresource":"status"},` + instant,
			auditLine{Verb: "patch", Agent: "bare", Resource: "instances/status", Done: at}, true},
		"no resource": {`{"verb":"get","requestURI":"/api?timeout=32s","userAgent":"a/b/c",` + instant,
			auditLine{Verb: "get", Agent: "a", Resource: "/api", Done: at}, false},
	}
	for name, c := range cases {
		got, err := parseRequest([]byte(c.line))
		if err != nil || got != c.want || got.isWrite() != c.write {
			t.Errorf("%s: got %+v (write %t), %v, want %+v", name, got, got.isWrite(), err, c.want)
		}
	}
}

func TestWrites(t *testing.T) {
	var all []auditLine
	for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection", "get", "list", "watch", ""} {
		all = append(all, auditLine{Verb: verb})
	}
	if got := writes(all); !slices.Equal(got, all[:5]) {
		t.Errorf("got %v, want the first five of %v", got, all)
	}
}

// logOf returns a log that has been read, and what the API server writes to its file.
func logOf(requests ...auditLine) (*auditLog, *bytes.Buffer) {
	var file bytes.Buffer
	return &auditLog{file: bufio.NewReader(&file), requests: requests}, &file
}

// The API server writes parts of lines.
func TestReadLog(t *testing.T) {
	log, file := logOf()
	marks := []int{}
	for _, part := range []string{"", applied[:50], applied[50:] + "\n" + applied, "\n"} {
		file.WriteString(part)
		marks = append(marks, log.mark())
	}
	if want := []int{0, 0, 1, 2}; !slices.Equal(marks, want) {
		t.Errorf("read %v lines, want %v", marks, want)
	}
	all, err := log.since(1)
	if err != nil || len(all) != 1 || all[0].Name != "dev-1" {
		t.Errorf("read %v, %v", all, err)
	}
	file.WriteString("{\"verb\":}\n" + applied + "\n")
	if _, err := log.since(0); err == nil || !strings.HasPrefix(err.Error(), "parse a line of the audit log: ") {
		t.Errorf("got %v, want an error about the line", err)
	}
	if _, err := log.awaitQuiet(t.Context(), 0, "", time.Hour); err == nil {
		t.Error("a log that cannot be read is quiet")
	}
}

func TestAwaitQuiet(t *testing.T) {
	names := func(requests []auditLine) string {
		var all []string
		for _, r := range requests {
			all = append(all, r.String())
		}
		return strings.Join(all, ", ")
	}
	// One request per second: three writes of the controller, and then only its reads,
	// the renewal of leases and another agent's writes.
	lines := []auditLine{
		{Agent: controllerName, Verb: "patch", Resource: "a"}, {Agent: controllerName, Verb: "create", Resource: "b"},
		{Agent: controllerName, Verb: "delete", Resource: "c"}, {Agent: controllerName, Verb: "get", Resource: "d"},
		{Agent: "kube-controller-manager", Verb: "update", Resource: "leases"}, {Agent: "bare", Verb: "patch", Resource: "e"},
		{Agent: controllerName, Verb: "watch", Resource: "f"}, {Agent: controllerName, Verb: "list", Resource: "g"},
	}
	cases := map[string]struct {
		agent    string
		quietFor time.Duration
		took     time.Duration
		want     string
	}{
		// The last write is read within 20 ms of the second in which it is sent.
		"the controller":   {controllerName, 3 * time.Second, 5 * time.Second, "patch a, create b, delete c, get d"},
		"all but leases":   {"", 4 * time.Second, 9 * time.Second, "patch a, create b, delete c, get d, patch e, watch f, list g"},
		"nothing to wait":  {controllerName, 0, 0, "patch a"},
		"an agent at rest": {"other", 2 * time.Second, 2 * time.Second, ""},
		"another's reads":  {"bare", 6500 * time.Millisecond, 11 * time.Second, "patch e"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, file := logOf(auditLine{Agent: controllerName, Verb: "patch", Resource: "before the mark"}, lines[0])
				log.file = bufio.NewReader(eachSecond{lines[1:], time.Now(), new(int), file})
				began := time.Now()
				got, err := log.awaitQuiet(t.Context(), 1, c.agent, c.quietFor)
				if took := time.Since(began).Truncate(time.Second); err != nil || names(got) != c.want || took != c.took {
					t.Errorf("got %s after %v, %v, want %s after %v", names(got), took, err, c.want, c.took)
				}
			})
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	log, _ := logOf()
	if _, err := log.awaitQuiet(ctx, 0, "", time.Hour); err == nil {
		t.Error("got no error without a context")
	}
}

// eachSecond is a log to which the API server writes one line per second.
type eachSecond struct {
	lines   []auditLine
	began   time.Time
	written *int
	file    *bytes.Buffer
}

func (e eachSecond) Read(into []byte) (int, error) {
	for *e.written < len(e.lines) && time.Since(e.began) >= time.Duration(*e.written+1)*time.Second {
		line := e.lines[*e.written]
		fmt.Fprintf(e.file, `{"verb":%q,"userAgent":%q,"objectRef":{"resource":%q},%s`+"\n", line.Verb, line.Agent, line.Resource, instant)
		*e.written++
	}
	return e.file.Read(into)
}

func TestPerObject(t *testing.T) {
	var requests []auditLine
	for _, resource := range []string{"services", "pods", "services", "nodes"} {
		requests = append(requests, auditLine{Verb: "get", Resource: resource})
	}
	if got, want := perObject(requests, 2), "get services 1.000, get nodes 0.500, get pods 0.500"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
