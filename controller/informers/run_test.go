package informers

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/internal/apitest"
)

// Passes may still ask for resources while the process stops. Run waits for what has
// started, and nothing starts afterwards.
func TestNothingStartsAfterRun(t *testing.T) {
	refuse := &http.Client{Transport: apitest.RoundTripper(func(*http.Request) (*http.Response, error) {
		return nil, http.ErrServerClosed
	})}
	all, err := newInformers(&rest.Config{}, refuse, func(ownership.Parent) {}, quick())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- all.Run(ctx) }()
	use := func(name string) {
		all.SetResources(types.NamespacedName{Name: name}, []schema.GroupVersionResource{{Version: "v1", Resource: name}})
	}
	stopped := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		for name := "a"; ; name += "a" {
			select {
			case <-stopped:
				return
			default:
				use(name)
			}
			if len(name) == 10 {
				cancel()
			}
		}
	})
	if err := <-done; err != nil {
		t.Error(err)
	}
	close(stopped)
	asking.Wait()
	use("after")
	if informer := all.find(schema.GroupVersionResource{Version: "v1", Resource: "after"}); informer.cancel != nil {
		t.Error("an informer was started after Run")
	}
}
