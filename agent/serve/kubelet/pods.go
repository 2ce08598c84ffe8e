package kubelet

import (
	"context"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	pods "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// Pods reads the kubelet's Pods API (KEP-4188).
type Pods struct {
	path string
	conn *grpc.ClientConn
}

// NewPods returns a client of the Pods API of the kubelet with the given root
// directory, which must be absolute.
func NewPods(kubeletDir string) (*Pods, error) {
	path := filepath.Join(kubeletDir, podsSocket)
	conn, err := dial(path)
	if err != nil {
		return nil, err
	}
	return &Pods{path: path, conn: conn}, nil
}

// Close closes the connection.
func (p *Pods) Close() error { return p.conn.Close() }

// Available reports whether the kubelet has a Pods API.
func (p *Pods) Available() bool {
	_, err := os.Stat(p.path)
	return err == nil
}

// PodEvents receives the Pods as the kubelet sees them. A Pod is the encoded
// message of a v1.Pod.
type PodEvents interface {
	// Put is called for each Pod that exists, and again when it changes.
	Put(pod []byte) error
	// Delete is called for a Pod whose containers have stopped.
	Delete(pod []byte) error
	// Synced is called once, after Put for every Pod that existed at the start.
	Synced()
}

// Watch watches the Pods until the stream ends, and returns why it ended. The
// kubelet refuses the stream with FailedPrecondition until it knows its Pods; it
// sends DELETED only after the containers of a Pod have stopped.
func (p *Pods) Watch(ctx context.Context, to PodEvents) error {
	stream, err := pods.NewPodsClient(p.conn).WatchPods(ctx, &pods.WatchPodsRequest{})
	if err != nil {
		return err
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		switch event.GetType() {
		case pods.EventType_INITIAL_SYNC_COMPLETE:
			to.Synced()
		case pods.EventType_DELETED:
			err = to.Delete(event.GetPod())
		default:
			err = to.Put(event.GetPod())
		}
		if err != nil {
			return err
		}
	}
}
