package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"akri.sh/akri/internal/kubeversion"
)

// recordingManager is a manager that records what is added to it, and starts nothing.
type recordingManager struct {
	manager.Manager
	added []manager.Runnable
}

func (r *recordingManager) Add(runnable manager.Runnable) error {
	r.added = append(r.added, runnable)
	return nil
}

func (*recordingManager) Start(context.Context) error { return nil }

// TestWhatAVersionLacksIsLoggedOnce uses servers that answer only with their version.
func TestWhatAVersionLacksIsLoggedOnce(t *testing.T) {
	for version, want := range map[string]string{
		"v1.29.3": "",
		"v1.31.4": `"because"="Kubernetes v1.31.4 is older than v1.34, the oldest that Akri has been tested with" ` +
			`"see"="` + kubeversion.Page + `"`,
		"v1.36.3": "",
	} {
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"gitVersion": %q}`, version)
		}))
		defer api.Close()
		var lines []string
		log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
		err := verifyVersion(t.Context(), &rest.Config{Host: api.URL}, log)
		if _, refused := errors.AsType[*kubeversion.TooOldError](err); refused != (version == "v1.29.3") || err != nil && !refused {
			t.Errorf("%s: %v", version, err)
		}
		got := strings.Join(lines, "\n")
		if strings.Count(got, `"because"=`) != min(1, len(want)) || !strings.Contains(got, want) {
			t.Errorf("%s: got\n%s\nwant %q once", version, got, want)
		}
	}
}

// A replica that does not lead needs its memory and the right version of the API server, too.
func TestStartIsForEveryReplica(t *testing.T) {
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	r := &recordingManager{Manager: mgr}
	if err := start(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if len(r.added) < 2 {
		t.Errorf("%d runnables are started, want those for memory and version", len(r.added))
	}
	for i, runnable := range r.added {
		if replica, ok := runnable.(manager.LeaderElectionRunnable); !ok || replica.NeedLeaderElection() {
			t.Errorf("runnable %d is started only on the replica that leads", i)
		}
	}
}
