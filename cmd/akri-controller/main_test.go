package main

import (
	"context"
	"testing"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
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
