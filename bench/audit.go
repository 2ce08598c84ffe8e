package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"akri.sh/akri/internal/backoff"
)

// auditLine is one line of the audit log.
type auditLine struct {
	Verb     string
	Agent    string // the user agent up to the first slash
	Resource string // "instances", "instances/status", or the path of another request
	Name     string
	Code     int
	Done     time.Time
}

// isWrite reports whether the request changes something.
func (r auditLine) isWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// String returns the kind of request, such as "patch instances/status".
func (r auditLine) String() string { return r.Verb + " " + r.Resource }

func parseRequest(line []byte) (auditLine, error) {
	var event struct {
		Verb       string `json:"verb"`
		RequestURI string `json:"requestURI"`
		UserAgent  string `json:"userAgent"`
		ObjectRef  *struct {
			Resource, Subresource, Name string
		} `json:"objectRef"`
		ResponseStatus *struct{ Code int } `json:"responseStatus"`
		StageTimestamp time.Time           `json:"stageTimestamp"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return auditLine{}, fmt.Errorf("parse a line of the audit log: %w", err)
	}
	agent, _, _ := strings.Cut(event.UserAgent, "/")
	r := auditLine{Verb: event.Verb, Agent: agent, Done: event.StageTimestamp}
	if event.ResponseStatus != nil {
		r.Code = event.ResponseStatus.Code
	}
	if ref := event.ObjectRef; ref != nil {
		r.Resource, r.Name = ref.Resource, ref.Name
		if ref.Subresource != "" {
			r.Resource += "/" + ref.Subresource
		}
	} else {
		r.Resource, _, _ = strings.Cut(event.RequestURI, "?")
	}
	return r, nil
}

// pollInterval is the time between two looks at an audit log.
const pollInterval = 20 * time.Millisecond

// auditLog is an audit log, which lists each request once it has finished. It is read when
// it is asked.
type auditLog struct {
	file     *bufio.Reader
	line     []byte // the part of the last line that has been written
	requests []auditLine
	err      error
}

// read reads what the API server has written meanwhile.
func (l *auditLog) read() {
	for l.err == nil {
		part, err := l.file.ReadBytes('\n')
		l.line = append(l.line, part...)
		if err != nil {
			if err != io.EOF {
				l.err = fmt.Errorf("read the audit log: %w", err)
			}
			return
		}
		var parsed auditLine
		if parsed, l.err = parseRequest(l.line); l.err == nil {
			l.requests = append(l.requests, parsed)
		}
		l.line = l.line[:0]
	}
}

// mark returns the current position in the log.
func (l *auditLog) mark() int {
	l.read()
	return len(l.requests)
}

// since returns the requests after a mark.
func (l *auditLog) since(mark int) ([]auditLine, error) {
	l.read()
	return l.requests[mark:len(l.requests):len(l.requests)], l.err
}

// awaitQuiet waits until an agent has sent no write for the given time, and
// returns all its requests after the mark. An empty agent is all agents; their leases,
// which are renewed all the time, do not count.
func (l *auditLog) awaitQuiet(ctx context.Context, mark int, agent string, quietFor time.Duration) ([]auditLine, error) {
	seen, next := []auditLine(nil), mark
	for last := time.Now(); ; {
		fresh, err := l.since(next)
		if err != nil {
			return nil, err
		}
		next += len(fresh)
		for _, r := range fresh {
			if agent != "" && r.Agent != agent || agent == "" && r.Resource == "leases" {
				continue
			}
			seen = append(seen, r)
			if r.isWrite() {
				last = time.Now()
			}
		}
		if time.Since(last) >= quietFor {
			return seen, nil
		}
		if !backoff.Sleep(ctx, pollInterval) {
			return nil, ctx.Err()
		}
	}
}

// tally counts requests by kind.
func tally(requests []auditLine) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.String()]++
	}
	return counts
}

// perObject formats a tally per object, the most frequent kind of request first.
func perObject(requests []auditLine, objects int) string {
	counts := tally(requests)
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	words := make([]string, len(kinds))
	for i, kind := range kinds {
		words[i] = fmt.Sprintf("%s %.3f", kind, float64(counts[kind])/float64(objects))
	}
	return strings.Join(words, ", ")
}

// writes returns the requests that change something.
func writes(requests []auditLine) []auditLine {
	var only []auditLine
	for _, r := range requests {
		if r.isWrite() {
			only = append(only, r)
		}
	}
	return only
}
