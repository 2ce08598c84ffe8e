package apitest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	v0 "akri.sh/akri/api/v0"
)

func TestMain(m *testing.M) { os.Exit(Run(m)) }

func TestKindsAreServed(t *testing.T) {
	config := Start(t)
	namespace := Namespace(t, config)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(v0.InstanceResource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 0 {
		t.Errorf("got %d Instances in a new namespace, want none", len(list.Items))
	}
}

// TestStartIsPatient checks that an API server that is slow to become usable is waited
// for, for as long as for anything else, and that no other error is waited out.
func TestStartIsPatient(t *testing.T) {
	slow := fmt.Errorf("default namespace didn't register within deadline: %w", context.DeadlineExceeded)
	broken := errors.New("failed to start the controlplane")
	for name, test := range map[string]struct {
		err     error
		lasts   time.Duration
		running bool
		calls   int
		want    error
	}{
		"at once":                 {calls: 1},
		"after 20 seconds":        {err: slow, lasts: 20 * time.Second, running: true, calls: 5},
		"never":                   {err: slow, lasts: time.Hour, running: true, calls: 12, want: slow},
		"nothing runs":            {err: slow, lasts: time.Hour, calls: 1, want: slow},
		"the program has a fault": {err: broken, lasts: time.Hour, running: true, calls: 1, want: broken},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				environment, began, calls := &envtest.Environment{}, time.Now(), 0
				_, err := start(environment, func() (*rest.Config, error) {
					if calls++; calls > 1 && environment.UseExistingCluster == nil {
						t.Error("another API server is started")
					}
					if time.Since(began) >= test.lasts {
						return &rest.Config{}, nil
					}
					if test.running {
						environment.Config = &rest.Config{}
					}
					time.Sleep(5 * time.Second)
					return nil, test.err
				})
				if !errors.Is(err, test.want) || calls != test.calls {
					t.Errorf("%d calls, and %v; want %d, and %v", calls, err, test.calls, test.want)
				}
				if environment.UseExistingCluster != nil {
					t.Error("Stop would leave the API server running")
				}
			})
		})
	}
}
