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

// extendedClaim is part of the name that the scheduler gives to the claim for the
// extended resources of a Pod (pkg/scheduler/framework/plugins/dynamicresources). It
// cuts off the name after long Pod names.
const extendedClaim = "-extended-resources-"

// Listing is one podresources list: the active Pods of the node, including the one
// that is being admitted.
type Listing []Holding

// Holding lists the ids of Akri's resources that the containers of one Pod have.
type Holding struct {
	Namespace, Name string
	// IDs are the ids by the name of the Instance or the Configuration; nil if there are none.
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
// must be absolute. The kubelet need not run yet; after a restart of the kubelet, the lister
// reconnects within half a second.
func NewLister(kubeletDir string) (*Lister, error) {
	conn, err := grpc.NewClient("unix://"+filepath.Join(kubeletDir, listSocket),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))
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
				if name, ours := strings.CutPrefix(devices.GetResourceName(), v0.Domain+"/"); ours {
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
