package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// auditLine is one line of the audit log.
type auditLine struct {
	Verb        string
	Agent       string // the user agent up to the first slash
	Version     string // what follows, up to a space or slash: of a hollow agent, its node's number
	Resource    string // "instances", "instances/status", or the path of another request
	Namespace   string
	Name        string
	Code        int
	Began, Done time.Time
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
			Resource, Subresource, Namespace, Name string
		} `json:"objectRef"`
		ResponseStatus           *struct{ Code int } `json:"responseStatus"`
		RequestReceivedTimestamp time.Time           `json:"requestReceivedTimestamp"`
		StageTimestamp           time.Time           `json:"stageTimestamp"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return auditLine{}, fmt.Errorf("parse a line of the audit log: %w", err)
	}
	agent, version, _ := strings.Cut(event.UserAgent, "/")
	if end := strings.IndexAny(version, " /"); end >= 0 {
		version = version[:end]
	}
	r := auditLine{Verb: event.Verb, Agent: agent, Version: version, Began: event.RequestReceivedTimestamp, Done: event.StageTimestamp}
	if event.ResponseStatus != nil {
		r.Code = event.ResponseStatus.Code
	}
	if ref := event.ObjectRef; ref != nil {
		r.Resource, r.Namespace, r.Name = ref.Resource, ref.Namespace, ref.Name
		if ref.Subresource != "" {
			r.Resource += "/" + ref.Subresource
		}
	} else {
		r.Resource, _, _ = strings.Cut(event.RequestURI, "?")
	}
	return r, nil
}

// auditLog follows an audit log, which lists each request once it has finished.
type auditLog struct {
	mu       sync.Mutex
	requests []auditLine
	err      error
}

// followLog follows a log until ctx is done. The file need not exist yet.
func followLog(ctx context.Context, path string) *auditLog {
	log := &auditLog{}
	go func() {
		if err := log.follow(ctx, path); err != nil && ctx.Err() == nil {
			log.mu.Lock()
			log.err = err
			log.mu.Unlock()
		}
	}()
	return log
}

// follow reads the audit log as the API server writes it, from its creation until the
// context is done. A line that has no end yet is completed by what is read next.
func (l *auditLog) follow(ctx context.Context, path string) error {
	const interval = 20 * time.Millisecond
	var file *os.File
	for file == nil {
		opened, err := os.Open(path)
		if err == nil {
			file = opened
		} else if !os.IsNotExist(err) {
			return err
		} else if !sleep(ctx, interval) {
			return ctx.Err()
		}
	}
	defer file.Close()
	reader := bufio.NewReaderSize(file, 1<<20)
	var line []byte
	for {
		part, err := reader.ReadBytes('\n')
		line = append(line, part...)
		if err == io.EOF {
			if !sleep(ctx, interval) {
				return ctx.Err()
			}
			continue
		}
		if err != nil {
			return err
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			parsed, err := parseRequest(text)
			if err != nil {
				return err
			}
			l.mu.Lock()
			l.requests = append(l.requests, parsed)
			l.mu.Unlock()
		}
		line = line[:0]
	}
}

// mark returns the current position in the log.
func (l *auditLog) mark() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.requests)
}

// since returns the requests read after a mark. The caller must not modify them.
func (l *auditLog) since(mark int) ([]auditLine, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
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
		if !sleep(ctx, 20*time.Millisecond) {
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

// tallyOutcomes counts requests by kind and, if they failed, by code.
func tallyOutcomes(requests []auditLine) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		kind := r.String()
		if r.Code >= 400 {
			kind += fmt.Sprintf(" (%d)", r.Code)
		}
		counts[kind]++
	}
	return counts
}

// listCounts formats counts, the largest first.
func listCounts(counts map[string]int) string {
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	words := make([]string, len(kinds))
	for i, kind := range kinds {
		words[i] = fmt.Sprintf("%s %d", kind, counts[kind])
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

// sleep waits for duration and returns true, or returns false when ctx is done first.
func sleep(ctx context.Context, duration time.Duration) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
