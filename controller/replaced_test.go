package controller_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller"
	"akri.sh/akri/internal/apitest"
)

// interruption ends the watches of a resource, and lets no others begin until it is over.
type interruption struct {
	resource string

	mu     sync.Mutex
	active bool
	open   []io.Closer
}

func (i *interruption) wrap(next http.RoundTripper) http.RoundTripper {
	return apitest.RoundTripper(func(request *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(request.URL.Path, "/"+i.resource) {
			return next.RoundTrip(request)
		}
		response, err := next.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.active {
			_ = response.Body.Close() // it is not read
			const unavailable = `{"kind":"Status","status":"Failure","message":"interrupted","reason":"ServiceUnavailable","code":503}`
			return &http.Response{
				StatusCode: http.StatusServiceUnavailable, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(unavailable)),
			}, nil
		}
		i.open = append(i.open, response.Body)
		return response, nil
	})
}

func (i *interruption) set(active bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.active = active
	for _, body := range i.open {
		_ = body.Close() // the reader reports it
	}
	i.open = nil
}

// A Configuration that is deleted and created again while the controller does not see
// Configurations is another one, although it has the same name, content and generation.
func TestConfigurationReplacedUnseen(t *testing.T) {
	c := newCluster(t)
	c.stop()
	watch := &interruption{resource: "configurations"}
	c.Config = rest.CopyConfig(c.Config)
	c.Config.Wrap(watch.wrap)
	c.runWith(controller.Options{Workers: 1})
	c.Apply(departing)
	c.condition(c.Instance("cfg", "cfg-cam", nil), v0.ConditionReady, metav1.ConditionTrue, v0.ReasonReady)
	c.condition(configuration("cfg"), v0.ConditionReady, metav1.ConditionTrue, v0.ReasonReady)
	c.settled()

	watch.set(true)
	cfg := configuration("cfg")
	c.Read("cfg", cfg)
	if err := c.Delete(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	c.removed(cfg)
	c.Apply(departing)
	watch.set(false)
	c.condition(cfg, v0.ConditionAccepted, metav1.ConditionTrue, v0.ReasonAccepted)
	c.Eventually("the group's object is that of the new Configuration", func() string {
		if object := c.object("v1", "ConfigMap", "group"); object == nil || !metav1.IsControlledBy(object, cfg) {
			return "it is not"
		}
		return ""
	})
}
