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

	"akri.sh/akri/discovery/web/details"
)

// maxRequests is the number of requests at the same time for one Configuration.
const maxRequests = 32

// maxPropertiesBytes bounds the names and values of the properties of a Configuration's
// devices. Each device may have an equal part.
const maxPropertiesBytes = 2 << 20

// What takes memory in addition to texts: a request that waits or is made, a device and a
// property.
const (
	requestBytes  = 4 << 10
	deviceBytes   = 512
	propertyBytes = 64
)

// bytesOf returns the memory of properties.
func bytesOf(properties map[string]string) int {
	bytes := 0
	for name, value := range properties {
		bytes += propertyBytes + len(name) + len(value)
	}
	return bytes
}

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
	bytes := min(maxRequests, len(targets)) * requestBytes
	for _, t := range targets {
		bytes += t.bytes()
	}
	if err := s.scanned.Set(bytes); err != nil {
		return nil, err
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
	if slices.ContainsFunc(results, failed) && wait(ctx, firstRetry) == nil {
		s.requestAll(ctx, results)
	}
}

// requestAll requests the targets of the results with an error, and sets the rest of these
// results. One request at a time needs no place among those that all Configurations share,
// so that slow devices of others do not stop it.
func (s *scanner) requestAll(ctx context.Context, results []result) {
	waiting := newQueue(results)
	requestNext := func() {
		if i, end, ok := waiting.take(); ok {
			r := &results[i]
			r.properties, r.err = s.request(ctx, r.target, maxPropertiesBytes/len(results))
			end(r.err != nil && reasonOf(r.err) == reasonTimeout)
			if s.scanned.Add(bytesOf(r.properties)) != nil { // which ends ctx
				r.properties = nil
			}
		}
	}
	ongoing, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		defer stop()
		for waiting.wait() {
			requestNext()
		}
	})
	for range min(maxRequests, len(results)) - 1 {
		group.Go(func() {
			for waiting.wait() {
				leave, err := s.places.Acquire(ongoing)
				if err != nil {
					return
				}
				requestNext()
				leave()
			}
		})
	}
	group.Wait()
}

// request returns the properties in a device's response, or why it does not count.
func (s *scanner) request(ctx context.Context, t target, maxBytes int) (properties map[string]string, err error) {
	err = s.client.get(ctx, t.url, func(answer response) error {
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
	properties := map[string]string{}
	return properties, collect(properties, s.wanted.Properties, document, maxBytes)
}

func expectedStatus(expect *details.Expect, status int) bool {
	if expect == nil || len(expect.Status) == 0 {
		return status >= http.StatusOK && status < http.StatusMultipleChoices
	}
	return slices.Contains(expect.Status, status)
}

func expectedValue(expect *details.Expect, document any) error {
	if len(expect.Values) == 0 {
		if _, found := details.Lookup(document, expect.Path); !found {
			return fmt.Errorf("%w: there is no %s", errUnexpected, expect.Path)
		}
		return nil
	}
	if value, ok := details.Scalar(document, expect.Path); !ok || !slices.Contains(expect.Values, value) {
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
