package informers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating"
)

// quick is a pace at which a watch lasts a second: the API server counts whole ones.
const quick = 1100 * time.Millisecond

// A watch that stops working after its first sync is reported to the Configurations
// that use the resource, and counts as synced again when it works.
func TestFailingWatch(t *testing.T) {
	hang := func(request *http.Request) (*http.Response, error) {
		<-request.Context().Done()
		return nil, request.Context().Err()
	}
	answer := func(request *http.Request, code int, body string) *http.Response {
		return &http.Response{
			StatusCode: code, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)),
		}
	}
	for name, test := range map[string]struct {
		serve serverFunc
		err   string // part of it
	}{
		"permission revoked": {
			serve: func(request *http.Request) (*http.Response, error) {
				return answer(request, http.StatusForbidden,
					`{"kind":"Status","status":"Failure","message":"may not list","reason":"Forbidden","code":403}`), nil
			},
			err: "may not list",
		},
		"no longer served": {
			serve: func(request *http.Request) (*http.Response, error) {
				return answer(request, http.StatusNotFound, "404 page not found"), nil
			},
			err: "could not find the requested resource",
		},
		"no answer": {serve: hang, err: errSilent.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			w := watchWith(t, quick)
			user := ownership.Parent{
				Level: templating.ConfigurationLevel, NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: "cfg"},
			}
			a := w.parent("a")
			w.SetResources(user.NamespacedName, []schema.GroupVersionResource{configMaps})
			w.synced(a)
			w.applied(a, nil)
			notified := w.times(user)

			w.serve.Store(&test.serve) // noticed when the watch is opened again
			w.eventually("a report", func() bool { return w.times(user) == notified+1 })
			state := w.Ensure(configMaps, a)
			if state.Synced || state.Err == nil || !strings.Contains(state.Err.Error(), test.err) {
				t.Errorf("state %+v, want an error with %q", state, test.err)
			}
			asked := w.times(a)
			if object, found := w.Get(configMaps, a.NamespacedName); !found || object.ManagedFieldsHash == "" {
				t.Error("what was known of the object is lost")
			}

			w.patch("a", `{"data":{"k":"2"}}`) // not seen now
			w.serve.Store(nil)
			w.eventually("the recovery", func() bool { return w.State(configMaps).Synced })
			w.eventually("notifications", func() bool { return w.times(user) == notified+2 && w.times(a) > asked })
			w.eventually("the change in the meantime", func() bool {
				object, _ := w.Get(configMaps, a.NamespacedName)
				live := w.get("a")
				return object.ResourceVersion == live.GetResourceVersion()
			})
		})
	}
}

// A list that begins but never arrives is reported, too, although client-go sees no error.
func TestAListThatNeverArrives(t *testing.T) {
	w := watchWith(t, 200*time.Millisecond)
	silent := serverFunc(func(request *http.Request) (*http.Response, error) {
		body, never := io.Pipe()
		context.AfterFunc(request.Context(), func() { never.CloseWithError(request.Context().Err()) })
		header := http.Header{"Content-Type": {"application/json"}}
		return &http.Response{StatusCode: http.StatusOK, Request: request, Header: header, Body: body}, nil
	})
	w.serve.Store(&silent)
	a := w.parent("a")
	w.eventually("a report", func() bool { return errors.Is(w.Ensure(configMaps, a).Err, errSilent) })
	w.serve.Store(nil)
	w.eventually("the recovery", func() bool { return w.Ensure(configMaps, a).Synced })
}
