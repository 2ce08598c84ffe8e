package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
)

// statusServer is an API server that writes the status of its only Configuration.
type statusServer struct {
	version int
	listed  []v0.DiscoveryFailure
	writes  int
}

// serve answers a server-side apply.
func (s *statusServer) serve(request *http.Request) (*http.Response, error) {
	var applied v0.Configuration
	if err := json.NewDecoder(request.Body).Decode(&applied); err != nil {
		return nil, err
	}
	s.writes++
	switch {
	case applied.ResourceVersion != fmt.Sprint(s.version):
		return respond(http.StatusConflict, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonConflict})
	case len(s.listed)+len(applied.Status.DiscoveryFailures) > v0.MaxDiscoveryFailures:
		return respond(http.StatusUnprocessableEntity, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid})
	}
	s.version++
	return respond(http.StatusOK, s.object())
}

// object returns the Configuration.
func (s *statusServer) object() *v0.Configuration {
	return &v0.Configuration{
		TypeMeta:   metav1.TypeMeta{APIVersion: v0.GroupVersion.String(), Kind: v0.ConfigurationKind.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cam", ResourceVersion: fmt.Sprint(s.version)},
	}
}

// respond returns a response.
func respond(code int, object any) (*http.Response, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}

// A write waits, first for a random part of a second and after a conflict for longer. Nothing
// is written meanwhile, nor if the status shows the failures. If it is full, the wait is long.
func TestReportsAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &statusServer{}
		client, err := dynamic.NewForConfig(&rest.Config{Host: "http://api.test", QPS: -1, Transport: apitest.RoundTripper(server.serve)})
		if err != nil {
			t.Fatal(err)
		}
		r := newReporter(client, "test.node", slog.New(slog.DiscardHandler))
		stale, wanted := &cachedConfiguration{Configuration: *server.object()}, []v0.DiscoveryFailure{{Node: "node", Handler: "h", Message: "m"}}
		stale.ResourceVersion = "before"
		report := func(writes int, waits bool) (again time.Time) {
			t.Helper()
			again, err := r.report(t.Context(), stale, wanted)
			if err != nil || server.writes != writes || again.After(time.Now()) != waits {
				t.Errorf("%d writes, again at %s, %v; want %d writes, and to wait: %t", server.writes, again, err, writes, waits)
			}
			return again
		}
		report(0, true)
		time.Sleep(time.Until(report(0, true)))
		report(1, true) // a conflict
		time.Sleep(time.Until(report(1, true)))
		stale.ResourceVersion = "0"
		report(2, false)
		stale.Status.DiscoveryFailures = wanted
		report(2, false)

		stale.ResourceVersion, stale.Status.DiscoveryFailures = fmt.Sprint(server.version), nil
		for i := range v0.MaxDiscoveryFailures {
			server.listed = append(server.listed, v0.DiscoveryFailure{Node: fmt.Sprint(i)})
		}
		time.Sleep(time.Until(report(2, true)))
		if again := report(3, true); time.Until(again) < fullDelay { // the status is full
			t.Errorf("the next attempt is in %s", time.Until(again))
		}
	})
}
