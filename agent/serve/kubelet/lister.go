package kubelet

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

const (
	callTimeout = 2 * time.Second
	// maxMessageBytes is the limit that the kubelet's own clients use. The default
	// of 4 MiB is too small for a full node.
	maxMessageBytes = 16 << 20
)

// retries repeats a call that the kubelet refuses because its clients together call too
// often: it answers 100 lists per second.
const retries = `{"methodConfig": [{
	"name": [{"service": "v1.PodResourcesLister"}],
	"retryPolicy": {
		"maxAttempts": 5, "initialBackoff": "0.05s", "maxBackoff": "0.5s", "backoffMultiplier": 2,
		"retryableStatusCodes": ["RESOURCE_EXHAUSTED"]
	}
}]}`

// extendedClaim is part of the name that the scheduler gives to the claim for the
// extended resources of a Pod (pkg/scheduler/framework/plugins/dynamicresources). It
// cuts off the name after long Pod names.
const extendedClaim = "-extended-resources-"

// dial returns a connection to a socket of the kubelet, which need not exist yet.
// After a restart of the kubelet it reconnects within half a second.
func dial(path string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix://"+path,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(retries),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))
}

// Listing is one podresources list: the active Pods of the node, including the one
// that is being admitted.
type Listing []Holding

// Holding lists the ids of Akri's resources that the containers of one Pod have.
type Holding struct {
	Namespace, Name string
	// IDs are the ids by resource name; nil if there are none.
	IDs map[string][]string
	// DRA means that extended resources of the Pod are served by DRA (KEP-5004). The
	// kubelet prepares them after it has allocated the ids of all containers.
	DRA bool
}

// Lister reads the kubelet's podresources list.
type Lister struct {
	conn   *grpc.ClientConn
	client podresources.PodResourcesListerClient
}

// NewLister returns a lister for the kubelet with the given root directory, which
// must be absolute.
func NewLister(kubeletDir string) (*Lister, error) {
	conn, err := dial(filepath.Join(kubeletDir, listSocket))
	if err != nil {
		return nil, err
	}
	return &Lister{conn: conn, client: podresources.NewPodResourcesListerClient(conn)}, nil
}

// Close closes the connection.
func (l *Lister) Close() error { return l.conn.Close() }

// List returns the Pods with their ids of Akri's resources. Right after the kubelet
// starts, the list is empty and the error nil.
func (l *Lister) List(ctx context.Context) (Listing, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := l.client.List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return nil, err
	}
	listing := make(Listing, 0, len(response.GetPodResources()))
	for _, pod := range response.GetPodResources() {
		holding := Holding{Namespace: pod.GetNamespace(), Name: pod.GetName()}
		for _, c := range pod.GetContainers() {
			for _, dynamic := range c.GetDynamicResources() {
				holding.DRA = holding.DRA || strings.Contains(dynamic.GetClaimName(), extendedClaim)
			}
			for _, devices := range c.GetDevices() {
				if name := devices.GetResourceName(); strings.HasPrefix(name, v0.Domain+"/") {
					if holding.IDs == nil {
						holding.IDs = map[string][]string{}
					}
					holding.IDs[name] = append(holding.IDs[name], devices.GetDeviceIds()...)
				}
			}
		}
		listing = append(listing, holding)
	}
	return listing, nil
}
