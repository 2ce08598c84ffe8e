package claims

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"akri.sh/akri/agent/serve/slots"
)

// storm is an API server that answers requests with an error. It records when they came.
type storm struct {
	start      time.Time
	code       int
	retryAfter string // the header, if not empty
	method     string // the only one that fails; all if empty
	failures   int    // how many requests fail
	requests   []received
}

type received struct {
	method string
	at     time.Duration
}

func (s *storm) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	s.requests = append(s.requests, received{r.Method, time.Since(s.start)})
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	body := `{"apiVersion":"akri.sh/v0","kind":"Instance","metadata":{"name":"cam","namespace":"default","resourceVersion":"6",` +
		`"labels":{"node.akri.sh/node-a":""}},` +
		`"spec":{"capacity":1}}`
	if s.failures > 0 && (s.method == "" || s.method == r.Method) {
		s.failures--
		response.StatusCode = s.code
		if s.retryAfter != "" {
			response.Header.Set("Retry-After", s.retryAfter)
		}
		body = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"in a storm","code":%d}`, s.code)
	}
	response.Body = io.NopCloser(strings.NewReader(body))
	return response, nil
}

// crowded returns the largest number of requests of a kind within a tenth of a second.
func (s *storm) crowded(method string) (most int) {
	for i, first := range s.requests {
		n := 0
		for _, r := range s.requests[i:] {
			if r.method == method && r.at-first.at < 100*time.Millisecond {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// TestStorms checks what a claim does while the API server answers with errors that pass:
// it tries again with increasing back-off, and gives up before the kubelet's call does. A
// conflict and a full queue are refusals, a 5xx says nothing about the patch. With
// Retry-After, client-go waits and repeats the request, and hides what the answer was.
func TestStorms(t *testing.T) {
	const always = 1000
	for _, answer := range []struct {
		code       int
		retryAfter string
		want       slots.Outcome
	}{
		{http.StatusConflict, "", slots.Refused},
		{http.StatusTooManyRequests, "", slots.Refused},
		{http.StatusTooManyRequests, "1", slots.Unknown},
		{http.StatusInternalServerError, "", slots.Unknown},
		{http.StatusServiceUnavailable, "", slots.Unknown},
		{http.StatusServiceUnavailable, "1", slots.Unknown},
		{http.StatusGatewayTimeout, "", slots.Unknown},
	} {
		for name, tc := range map[string]struct {
			method      string
			failures    int
			want        slots.Outcome
			least, most int // patches
		}{
			"a patch":     {http.MethodPatch, 1, slots.Written, 2, 2},
			"all patches": {http.MethodPatch, always, answer.want, 2, 7},
			"everything":  {"", always, answer.want, 1, 2}, // then reads
		} {
			if tc.method == "" && answer.code == http.StatusConflict {
				continue // a read has no conflicts
			}
			t.Run(fmt.Sprintf("%d %q %s", answer.code, answer.retryAfter, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &storm{start: time.Now(), code: answer.code, retryAfter: answer.retryAfter, method: tc.method, failures: tc.failures}
					e := newExecutor(t, s)
					e.store.Keep(known())
					got := e.Claim(t.Context(), cam, firstSlot)
					took, patches := time.Since(s.start), 0
					for _, r := range s.requests {
						if r.method == http.MethodPatch {
							patches++
						}
					}
					if got.Outcome != tc.want || (got.Err == nil) != (tc.want == slots.Written) {
						t.Errorf("outcome %v (%v), want %v", got.Outcome, got.Err, tc.want)
					}
					if tc.want != slots.Written && got.Record != nil {
						t.Error("a record was returned, as if the slot had another owner")
					}
					if answer.retryAfter == "" && got.Err != nil && !strings.Contains(got.Err.Error(), "in a storm") {
						t.Errorf("the error lacks the answer: %v", got.Err)
					}
					if patches < tc.least || patches > tc.most || len(s.requests) > 14 {
						t.Errorf("%d patches, want %d to %d, in at most 14 requests: %v", patches, tc.least, tc.most, s.requests)
					}
					if p, r := s.crowded(http.MethodPatch), s.crowded(http.MethodGet); p > 4 || r > 4 {
						t.Errorf("%d patches and %d reads within a tenth of a second: %v", p, r, s.requests)
					}
					if took > Deadline {
						t.Errorf("took %s", took)
					}
				})
			})
		}
	}
}
