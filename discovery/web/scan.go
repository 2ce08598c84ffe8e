package web

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// scan requests every device once. The error is that of the index.
func (s *scanner) scan(ctx context.Context) ([]target, error) {
	defer s.metrics.Scanned(time.Now())
	targets, rejected, err := s.targetsOf(ctx)
	if err != nil {
		return nil, err
	}
	for range rejected {
		s.metrics.Failed("bad_item")
	}
	if s.wanted.Requested() {
		s.request(ctx, targets)
	}
	return targets, nil
}

// request requests targets. A request waits for its host before it waits for others, so that a
// host that hangs takes no more than its own places.
func (s *scanner) request(ctx context.Context, targets []target) {
	var group sync.WaitGroup
	places, hosts := semaphore.NewWeighted(maxRequests), map[string]*semaphore.Weighted{}
	for i := range targets {
		t := &targets[i]
		t.err = errAwaited
		origin := originOf(t.url)
		if hosts[origin] == nil {
			hosts[origin] = semaphore.NewWeighted(maxHostRequests)
		}
		host := hosts[origin]
		group.Go(func() {
			if host.Acquire(ctx, 1) != nil {
				return
			}
			defer host.Release(1)
			if places.Acquire(ctx, 1) != nil {
				return
			}
			defer places.Release(1)
			t.err = s.client.get(ctx, t.url, deviceKind, func(answer response) error {
				properties, err := s.propertiesOf(answer, maxPropertiesBytes/len(targets))
				maps.Copy(t.properties, properties)
				return err
			})
			if t.err != nil && ctx.Err() == nil {
				s.metrics.Failed(reasonOf(t.err))
				s.log.Debug("A device does not respond as expected", "id", t.id, "err", t.err)
			}
		})
	}
	group.Wait()
}

// propertiesOf returns the properties in a device's response, or why it does not count.
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
		return "timeout"
	}
	return "connect"
}
