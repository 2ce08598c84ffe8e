package publish

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
)

// creations counts the requests to create something.
type creations struct {
	http.RoundTripper

	count atomic.Int64
}

func (c *creations) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPost {
		c.count.Add(1)
	}
	return c.RoundTripper.RoundTrip(request)
}

// An Instance that the API server rejects is not written by each pass: a handler may cause
// two a second. The reason stays, and a change is tried at once.
func TestRejectedInstanceIsNotWrittenByEachPass(t *testing.T) {
	b := newBench(t)
	config, counted := rest.CopyConfig(apitest.Start(t)), &creations{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		counted.RoundTripper = next
		return counted
	})
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	b.client = client
	p := b.publisher("node-a")
	bad := streams.Device{Key: streams.Key{ID: string(make([]byte, 300<<10)), Shared: true}} // annotations have a limit
	began := time.Now()
	for range 50 {
		if result := b.publish(p, bad); len(result.Refused) != 1 || result.Next.IsZero() {
			t.Fatalf("refused %d, again at %s; want the reason each time, and another attempt", len(result.Refused), result.Next)
		}
	}
	if sent, most := counted.count.Load(), 2+int64(time.Since(began)/minRejectedDelay); sent < 1 || sent > most {
		t.Errorf("50 passes sent %d requests, want one, and at most %d in this time", sent, most)
	}
	before := counted.count.Load()
	b.configuration.Spec.Capacity = 3
	if b.publish(p, bad); counted.count.Load() == before {
		t.Error("a change was not tried")
	}
}

func TestRejections(t *testing.T) {
	cam := types.NamespacedName{Namespace: "plant", Name: "cam"}
	step := func(action Action, capacity int32) Step {
		return Step{Action: action, Want: &v0.Instance{Spec: v0.InstanceSpec{Capacity: capacity}}}
	}
	r, at, rejected := newRejections(), now, errors.New("rejected")
	var last time.Duration
	for range 20 {
		if again, err := r.standing(cam, step(Create, 1), at); err != nil {
			t.Fatalf("at %s, the next attempt is at %s", at, again)
		}
		until := r.add(cam, step(Create, 1), rejected, at)
		if again, err := r.standing(cam, step(Create, 1), until.Add(-1)); !again.Equal(until) || !errors.Is(err, rejected) {
			t.Errorf("just before the next attempt: %s, %v; want %s and the reason", again, err, until)
		}
		last, at = until.Sub(at), until
	}
	if last < maxRejectedDelay || last > maxRejectedDelay*3/2 {
		t.Errorf("the delay is %s in the end, want %s and a random part", last, maxRejectedDelay)
	}
	for why, other := range map[string]Step{"another action": step(Update, 1), "a change": step(Create, 2)} {
		if _, err := r.standing(cam, other, at.Add(-1)); err != nil {
			t.Errorf("%s is not tried at once", why)
		}
	}
	if until := r.add(cam, step(Create, 2), rejected, at); until.Sub(at) > minRejectedDelay*3/2 {
		t.Errorf("a change that is rejected is repeated after %s", until.Sub(at))
	}
	r.add(types.NamespacedName{Name: "other"}, step(Create, 1), rejected, at.Add(time.Hour))
	if len(r.all) != 1 {
		t.Errorf("%d rejections are remembered, want the latest", len(r.all))
	}
	if r.forget(types.NamespacedName{Name: "other"}); len(r.all) != 0 {
		t.Error("the rejection is remembered although the Instance was written")
	}
	for i := range maxRejections + 10 {
		r.add(types.NamespacedName{Name: fmt.Sprint(i)}, step(Create, 1), rejected, at)
	}
	if len(r.all) != maxRejections {
		t.Errorf("%d rejections are remembered, want at most %d", len(r.all), maxRejections)
	}
}
