package witness

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	v0 "akri.sh/akri/api/v0"
)

// Sockets of the kubelet below its root folder.
const (
	listSocket = "pod-resources/kubelet.sock"
	podsSocket = "pods-api/pods-api.sock"
)

const (
	callTimeout = 2 * time.Second
	// largestMessage is what the kubelet's own clients allow; the default of
	// 4 MiB is too small for a full node.
	largestMessage = 16 << 20
)

// dial connects to a socket of the kubelet, now or when it is there. After a
// restart of the kubelet the connection is made anew within half a second.
func dial(path string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix://"+path,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largestMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))
}

// Lister reads the kubelet's podresources list.
type Lister struct {
	conn   *grpc.ClientConn
	client podresources.PodResourcesListerClient
}

// NewLister returns a lister for the kubelet whose root folder is given, which
// must be absolute.
func NewLister(kubeletDir string) (*Lister, error) {
	conn, err := dial(filepath.Join(kubeletDir, listSocket))
	if err != nil {
		return nil, err
	}
	return &Lister{conn: conn, client: podresources.NewPodResourcesListerClient(conn)}, nil
}

// Close ends the connection.
func (l *Lister) Close() error { return l.conn.Close() }

// List returns what containers have of our resources. Right after the kubelet
// started it is empty without an error.
func (l *Lister) List(ctx context.Context) (Listing, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := l.client.List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return nil, err
	}
	var listing Listing
	for _, pod := range response.GetPodResources() {
		holding := Holding{Namespace: pod.GetNamespace(), Name: pod.GetName(), IDs: map[string][]string{}}
		for _, c := range pod.GetContainers() {
			for _, devices := range c.GetDevices() {
				if name := devices.GetResourceName(); strings.HasPrefix(name, v0.Domain+"/") {
					holding.IDs[name] = append(holding.IDs[name], devices.GetDeviceIds()...)
				}
			}
		}
		if len(holding.IDs) > 0 {
			listing = append(listing, holding)
		}
	}
	return listing, nil
}
