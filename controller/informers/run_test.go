package informers

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"akri.sh/akri/controller/ownership"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// TestNothingStartsAfterRun checks that Run waits for the informers that it started,
// although passes still ask for further ones while the process stops.
func TestNothingStartsAfterRun(t *testing.T) {
	unreachable := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("there is no API server")
	})}
	all, err := New(&rest.Config{}, unreachable, func(ownership.Parent) {})
	if err != nil {
		t.Fatal(err)
	}
	use := func(name string) schema.GroupVersionResource {
		resource := schema.GroupVersionResource{Version: "v1", Resource: name}
		all.Use(types.NamespacedName{Name: name}, []schema.GroupVersionResource{resource})
		return resource
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- all.Run(ctx) }()
	stopped := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		for count := 1; ; count++ {
			select {
			case <-stopped:
				return
			default:
				use(strings.Repeat("a", count))
			}
			if count == 10 {
				cancel()
			}
		}
	})
	if err := <-done; err != nil {
		t.Error(err)
	}
	close(stopped)
	asking.Wait()
	after := use("after")
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.watched[after].cancel != nil {
		t.Error("an informer was started after Run")
	}
}
