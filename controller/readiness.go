package controller

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Ready adds a check that is passed once all Configurations and Instances have
// been read: from then on this controller works, or can take over from the one
// that leads.
func Ready(mgr manager.Manager) (healthz.Checker, error) {
	var synced atomic.Bool
	err := mgr.Add(always(func(ctx context.Context) error {
		synced.Store(mgr.GetCache().WaitForCacheSync(ctx))
		return nil
	}))
	return func(*http.Request) error {
		if !synced.Load() {
			return errors.New("no Configuration or Instance has been read yet: see in the log whether the API server is there and lets the controller list them")
		}
		return nil
	}, err
}

// always runs on every replica, leader or not.
type always func(context.Context) error

func (a always) Start(ctx context.Context) error { return a(ctx) }

func (always) NeedLeaderElection() bool { return false }
