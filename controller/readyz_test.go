package controller

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"akri.sh/akri/internal/apitest"
)

// A replica that does not lead runs what every replica runs, and nothing else.
func TestEveryReplica(t *testing.T) {
	config := apitest.Start(t)
	namespace := apitest.Namespace(t, config)
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "leader"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("another"), LeaseDurationSeconds: new(int32(3600)),
			AcquireTime: new(metav1.NowMicro()), RenewTime: new(metav1.NowMicro()),
		},
	}); err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		LeaderElection: true, LeaderElectionID: "leader", LeaderElectionNamespace: namespace,
		Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	every, leader := make(chan struct{}), make(chan struct{})
	if err := mgr.Add(EveryReplica(func(context.Context) error { close(every); return nil })); err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(manager.RunnableFunc(func(context.Context) error { close(leader); return nil })); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- mgr.Start(ctx) }()
	select {
	case <-every:
	case <-time.After(20 * time.Second):
		t.Error("a replica that does not lead does not run it")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	select {
	case <-leader:
		t.Error("the replica leads: the test proves nothing")
	default:
	}
}
