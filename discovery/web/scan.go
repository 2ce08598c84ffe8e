package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"akri.sh/akri/discovery/web/details"
)

// maxRequests is the number of requests at the same time for one Configuration.
const maxRequests = 32

var (
	errStatus     = errors.New("unexpected status")
	errUnexpected = errors.New("unexpected value")
)

// scan requests every device once. The error is that of the index.
func (s *scanner) scan(ctx context.Context) ([]result, error) {
	defer s.metrics.Scanned(time.Now())
	targets, rejected, err := s.targetsOf(ctx)
	if err != nil {
		return nil, err
	}
	for range rejected {
		s.metrics.Failed("bad_item")
	}
	results := make([]result, len(targets))
	var group errgroup.Group
	group.SetLimit(maxRequests)
	for i, t := range targets {
		results[i].target = t
		if s.wanted.Requested() {
			group.Go(func() error {
				results[i].properties, results[i].err = s.request(ctx, t)
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, r := range results {
		if r.err != nil && ctx.Err() == nil {
			s.metrics.Failed(reasonOf(r.err))
			s.log.Debug("A device does not respond as expected", "id", r.target.id, "err", r.err)
		}
	}
	return results, nil
}

// request returns the properties in a device's response, or why it does not count.
func (s *scanner) request(ctx context.Context, t target) (map[string]string, error) {
	answer, err := s.client.get(ctx, t.url)
	if err != nil {
		return nil, err
	}
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
	collect(properties, s.wanted.Properties, document)
	return properties, nil
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
