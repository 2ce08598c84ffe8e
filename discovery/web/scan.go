package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/sync/semaphore"

	"akri.sh/akri/discovery/internal/jsonvalue"
	"akri.sh/akri/discovery/web/details"
)

const (
	// maxRequests is the number of requests at the same time for one Configuration.
	maxRequests = 16
	// maxHostRequests is that to one host, such as a gateway with many devices.
	maxHostRequests = 4
)

var (
	errStatus     = errors.New("unexpected status")
	errAwaited    = errors.New("not requested yet")
	errUnexpected = errors.New("unexpected value")
)

// scan requests every device once, and those that fail again, up to a number of attempts.
// The error is that of the index.
func (s *scanner) scan(ctx context.Context, attempts int) ([]result, error) {
	defer s.metrics.Scanned(time.Now())
	targets, rejected, err := s.targetsOf(ctx)
	if err != nil {
		return nil, err
	}
	for range rejected {
		s.metrics.Failed("bad_item")
	}
	results := make([]result, len(targets))
	for i, t := range targets {
		results[i].target = t
	}
	if s.wanted.Requested() {
		for i := range results {
			results[i].err = errAwaited
		}
		s.requestAll(ctx, results)
		for range attempts - 1 {
			s.requestAgain(ctx, results)
		}
	}
	for _, r := range results {
		if r.err != nil && ctx.Err() == nil {
			s.metrics.Failed(reasonOf(r.err))
			s.log.Debug("A device does not respond as expected", "id", r.target.id, "err", r.err)
		}
	}
	return results, nil
}

// requestAgain requests the targets that have failed again, after a pause.
func (s *scanner) requestAgain(ctx context.Context, results []result) {
	failed := func(r result) bool { return r.err != nil }
	if slices.ContainsFunc(results, failed) && pause(ctx, firstRetry) {
		s.requestAll(ctx, results)
	}
}

// host has the places for requests to a host.
type host chan struct{}

func newHost(targets int) host {
	h := make(host, maxHostRequests+targets)
	for range maxHostRequests {
		h <- struct{}{}
	}
	return h
}

// leave ends a request. Each one that has timed out permits another one for the rest of the
// scan: devices that hang do not burden the host, and the others must not wait for all of them.
func (h host) leave(timedOut bool) {
	h <- struct{}{}
	if timedOut {
		h <- struct{}{}
	}
}

// requestAll requests the targets of the results with an error, and sets the rest of these
// results. A request waits for its host before it waits for others, so that a host that hangs
// takes no more than its own places.
func (s *scanner) requestAll(ctx context.Context, results []result) {
	var group sync.WaitGroup
	places, hosts := semaphore.NewWeighted(maxRequests), map[string]host{}
	for i := range results {
		r := &results[i]
		if r.err == nil {
			continue
		}
		origin := originOf(r.target.url)
		if hosts[origin] == nil {
			hosts[origin] = newHost(len(results))
		}
		own := hosts[origin]
		group.Go(func() {
			select {
			case <-own:
			case <-ctx.Done():
				return
			}
			if places.Acquire(ctx, 1) != nil {
				return
			}
			r.properties, r.err = s.request(ctx, r.target, maxPropertiesBytes/len(results))
			places.Release(1)
			own.leave(r.err != nil && reasonOf(r.err) == reasonTimeout)
		})
	}
	group.Wait()
}

// request returns the properties in a device's response, or why it does not count.
func (s *scanner) request(ctx context.Context, t target, maxBytes int) (properties map[string]string, err error) {
	err = s.client.get(ctx, t.url, deviceUnits, func(answer response) error {
		properties, err = s.propertiesOf(answer, maxBytes)
		return err
	})
	return properties, err
}

func (s *scanner) propertiesOf(answer response, maxBytes int) (map[string]string, error) {
	expect := s.wanted.Expect
	if !expectedStatus(expect, answer.status) {
		return nil, fmt.Errorf("%w %d", errStatus, answer.status)
	}
	if len(s.wanted.Properties) == 0 && (expect == nil || expect.Path == "") {
		return nil, nil
	}
	document, err := answer.json()
	if err != nil {
		return nil, err
	}
	if expect != nil && expect.Path != "" {
		if err := expectedValue(expect, document); err != nil {
			return nil, err
		}
	}
	return propertiesAt(s.wanted.Properties, document, maxBytes)
}

func expectedStatus(expect *details.Expect, status int) bool {
	if expect == nil || len(expect.Status) == 0 {
		return status >= http.StatusOK && status < http.StatusMultipleChoices
	}
	return slices.Contains(expect.Status, status)
}

func expectedValue(expect *details.Expect, document gjson.Result) error {
	found := document.Get(expect.Path)
	value, ok := jsonvalue.Text(found)
	switch {
	case !found.Exists():
		return fmt.Errorf("%w: there is no %s", errUnexpected, expect.Path)
	case len(expect.Values) > 0 && (!ok || !slices.Contains(expect.Values, value)):
		return fmt.Errorf("%w of %s", errUnexpected, expect.Path)
	}
	return nil
}

// reasonTimeout is the reason of a device that does not answer in time.
const reasonTimeout = "timeout"

// reasonOf returns the reason of a failure for the metrics.
func reasonOf(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, errTooLarge):
		return "too_large"
	case errors.Is(err, errNotJSON):
		return "not_json"
	case errors.Is(err, errStatus):
		return "status"
	case errors.Is(err, errUnexpected):
		return "unexpected_value"
	case errors.As(err, &timeout) && timeout.Timeout():
		return reasonTimeout
	}
	return "connect"
}
