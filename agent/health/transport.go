package health

import (
	"context"
	"net/http"
)

type key struct{}

// With returns a context for requests that a loop sends through a [Transport].
func With(ctx context.Context, l *Loop) context.Context { return context.WithValue(ctx, key{}, l) }

// Transport returns a transport that records the end of each request as progress of the
// loop that sent it.
func Transport(next http.RoundTripper) http.RoundTripper { return transport{next} }

type transport struct{ next http.RoundTripper }

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if l, ok := request.Context().Value(key{}).(*Loop); ok {
		l.Beat()
	}
	return response, err
}
