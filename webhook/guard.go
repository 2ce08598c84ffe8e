package webhook

import (
	"fmt"
	"net/http"
	"strings"
)

// onlyDryRuns lets reads and questions about rights pass, makes every other
// request a dry run, and stops deletions, which say in their body whether they
// are meant. It is why this package cannot write, whatever mistake is made above.
func onlyDryRuns(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		switch {
		case request.Method == http.MethodGet, request.Method == http.MethodHead:
			return next.RoundTrip(request)
		case strings.HasPrefix(request.URL.Path, "/apis/authorization.k8s.io/"):
			return next.RoundTrip(request)
		case request.Method == http.MethodDelete:
			return nil, fmt.Errorf("admission sends no %s", request.Method)
		}
		tried := request.Clone(request.Context())
		query := tried.URL.Query()
		query.Set("dryRun", "All")
		tried.URL.RawQuery = query.Encode()
		return next.RoundTrip(tried)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
