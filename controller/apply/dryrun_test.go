package apply

import (
	"net/http"
	"net/url"
	"testing"
)

// Writes become dry runs; requests that cannot be dry runs are not sent.
func TestDryRunOnly(t *testing.T) {
	const (
		forwarded = "forwarded"
		tried     = "tried"
		refused   = "refused"
		objects   = "/api/v1/namespaces/ns/configmaps"
		reviews   = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	)
	for _, test := range []struct{ method, path, want string }{
		{http.MethodGet, objects, forwarded},
		{http.MethodHead, objects, forwarded},
		{http.MethodPatch, objects, tried},
		{http.MethodPut, objects, tried},
		{http.MethodPost, objects, tried},
		{http.MethodDelete, objects, refused},
		{"CONNECT", objects, refused},
		{http.MethodPost, reviews, forwarded},
		{http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", forwarded},
		{http.MethodPut, reviews, tried},
		{http.MethodDelete, reviews, refused},
		{http.MethodPost, reviews + "/x", tried},
	} {
		got := refused
		transport := DryRunOnly(roundTripper(func(request *http.Request) (*http.Response, error) {
			got = forwarded
			query := request.URL.Query()
			if query.Get("dryRun") == "All" {
				got = tried
			}
			if query.Get("force") != "true" {
				t.Errorf("%s %s is sent with %v", test.method, test.path, query)
			}
			return &http.Response{}, nil
		}))
		request := &http.Request{Method: test.method, URL: &url.URL{Path: test.path, RawQuery: "force=true"}}
		_, err := transport.RoundTrip(request)
		if got != test.want || (err != nil) != (test.want == refused) {
			t.Errorf("%s %s: %s, error %v, want %s", test.method, test.path, got, err, test.want)
		}
		if request.URL.RawQuery != "force=true" {
			t.Errorf("%s %s: the caller's request was changed", test.method, test.path)
		}
	}
}
