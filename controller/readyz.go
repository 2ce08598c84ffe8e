package controller

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Ready returns a check that passes once all Configurations and Instances have been
// read. From then on this replica works, or can take over from the leader.
func Ready(mgr manager.Manager) (healthz.Checker, error) {
	var synced atomic.Bool
	err := mgr.Add(everyReplica(func(ctx context.Context) error {
		synced.Store(mgr.GetCache().WaitForCacheSync(ctx))
		return nil
	}))
	return func(*http.Request) error {
		if !synced.Load() {
			return errors.New("no Configuration or Instance has been read yet: " +
				"check in the log whether the API server answers and allows the controller to list them")
		}
		return nil
	}, err
}

// everyReplica is a Runnable that runs on every replica, leader or not.
type everyReplica func(context.Context) error

func (e everyReplica) Start(ctx context.Context) error { return e(ctx) }

func (everyReplica) NeedLeaderElection() bool { return false }
