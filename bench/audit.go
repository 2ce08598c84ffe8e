package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// request is what a line of the audit log says.
type request struct {
	Verb        string
	Agent       string // of the user agent, what precedes the first slash
	Resource    string // "instances", "instances/status"; the path if it is none
	Namespace   string
	Name        string
	Code        int
	Began, Done time.Time
}

// write tells whether a request asks for a change.
func (r request) write() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// String is the request's kind, such as "patch instances/status".
func (r request) String() string { return r.Verb + " " + r.Resource }

func parseRequest(line []byte) (request, error) {
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
		return request{}, fmt.Errorf("a line of the audit log: %w", err)
	}
	agent, _, _ := strings.Cut(event.UserAgent, "/")
	r := request{Verb: event.Verb, Agent: agent, Began: event.RequestReceivedTimestamp, Done: event.StageTimestamp}
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

// auditLog follows an audit log. A request is in it when it is finished.
type auditLog struct {
	mu       sync.Mutex
	requests []request
	err      error
}

// followLog reads a log until ctx ends. The file need not exist yet.
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

func (l *auditLog) follow(ctx context.Context, path string) error {
	const pace = 20 * time.Millisecond
	var file *os.File
	for file == nil {
		opened, err := os.Open(path)
		if err == nil {
			file = opened
		} else if !os.IsNotExist(err) {
			return err
		} else if !sleep(ctx, pace) {
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
			if !sleep(ctx, pace) {
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

// mark is a place in the log: what has been read so far.
func (l *auditLog) mark() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.requests)
}

// since are the requests read after a mark. They must not be changed.
func (l *auditLog) since(mark int) ([]request, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests[mark:len(l.requests):len(l.requests)], l.err
}

// quiet waits until an agent has written nothing for a while, and returns all
// its requests after the mark.
func (l *auditLog) quiet(ctx context.Context, mark int, agent string, pause time.Duration) ([]request, error) {
	seen, next := []request(nil), mark
	for last := time.Now(); ; {
		fresh, err := l.since(next)
		if err != nil {
			return nil, err
		}
		next += len(fresh)
		for _, r := range fresh {
			if r.Agent != agent {
				continue
			}
			seen = append(seen, r)
			if r.write() {
				last = time.Now()
			}
		}
		if time.Since(last) >= pause {
			return seen, nil
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return nil, ctx.Err()
		}
	}
}

// tally counts requests by their kind.
func tally(requests []request) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.String()]++
	}
	return counts
}

func writes(requests []request) []request {
	var only []request
	for _, r := range requests {
		if r.write() {
			only = append(only, r)
		}
	}
	return only
}

// sleep returns false if ctx ended first.
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
