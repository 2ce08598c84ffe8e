package controller

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Ready returns a check that passes while all that this replica watches has been read: it works,
// or can take over from the leader.
func Ready(mgr manager.Manager) healthz.Checker {
	return func(probe *http.Request) error {
		ctx, cancel := context.WithTimeout(probe.Context(), 100*time.Millisecond)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("not all objects that the controller watches have been read yet: " +
				"check in the log whether the API server answers and allows the controller to list them")
		}
		return nil
	}
}

// EveryReplica is a Runnable that runs on every replica, leader or not.
type EveryReplica func(context.Context) error

// Start implements manager.Runnable.
func (e EveryReplica) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (EveryReplica) NeedLeaderElection() bool { return false }
