package main

import (
	"fmt"
	"net/http"
)

// dryRun lets reads pass, has the API server try writes without keeping them, and
// refuses what it cannot be sure of: a deletion says in its body whether it is
// meant.
func dryRun(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		switch request.Method {
		case http.MethodGet, http.MethodHead:
			return next.RoundTrip(request)
		case http.MethodPatch, http.MethodPut, http.MethodPost:
			tried := request.Clone(request.Context())
			query := tried.URL.Query()
			query.Set("dryRun", "All")
			tried.URL.RawQuery = query.Encode()
			return next.RoundTrip(tried)
		}
		return nil, fmt.Errorf("a dry run sends no %s", request.Method)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
