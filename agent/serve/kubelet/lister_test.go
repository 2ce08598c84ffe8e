package kubelet_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"akri.sh/akri/agent/serve/kubelet"
)

// busyKubelet refuses a number of calls, as a kubelet does whose clients call too often.
type busyKubelet struct {
	podresources.UnimplementedPodResourcesListerServer
	refusals, calls int
}

func (k *busyKubelet) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	if k.calls++; k.calls <= k.refusals {
		return nil, status.Error(codes.ResourceExhausted, "rejected by rate limit")
	}
	return &podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{{Namespace: "default", Name: "p"}}}, nil
}

func TestListOfABusyKubelet(t *testing.T) {
	for refusals, listed := range map[int]bool{0: true, 4: true, 100: false} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "pod-resources"), 0o755); err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("unix", filepath.Join(dir, "pod-resources", "kubelet.sock"))
		if err != nil {
			t.Fatal(err)
		}
		busy := &busyKubelet{refusals: refusals}
		server := grpc.NewServer()
		podresources.RegisterPodResourcesListerServer(server, busy)
		go func() { _ = server.Serve(listener) }() // ends with Stop
		defer server.Stop()
		lister, err := kubelet.NewLister(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer lister.Close()
		listing, err := lister.List(t.Context())
		if (err == nil) != listed || (len(listing) == 1) != listed {
			t.Errorf("%d refusals: got %v, %v after %d calls", refusals, listing, err, busy.calls)
		}
	}
}
