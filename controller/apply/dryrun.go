package apply

import (
	"fmt"
	"net/http"
)

// accessReviews are the paths of the API server's access reviews. Such a request is a
// POST, and stores nothing.
var accessReviews = map[string]bool{
	"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": true,
	"/apis/authorization.k8s.io/v1/subjectaccessreviews":     true,
}

// DryRunOnly returns a transport that cannot write: it forwards reads and access
// reviews, turns creates, updates and patches into dry runs, and refuses every
// other request. A deletion is refused because its body can override the query.
func DryRunOnly(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		switch request.Method {
		case http.MethodGet, http.MethodHead:
			return next.RoundTrip(request)
		case http.MethodPost, http.MethodPut, http.MethodPatch:
			if request.Method == http.MethodPost && accessReviews[request.URL.Path] {
				return next.RoundTrip(request)
			}
			guarded := request.Clone(request.Context())
			query := guarded.URL.Query()
			query.Set("dryRun", "All")
			guarded.URL.RawQuery = query.Encode()
			return next.RoundTrip(guarded)
		}
		return nil, fmt.Errorf("dry run: %s %s is not sent: only reads, creates, updates and patches can be tried",
			request.Method, request.URL.Path)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
