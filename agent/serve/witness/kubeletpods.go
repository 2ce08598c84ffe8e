package witness

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	pods "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// watchKubelet follows the pods as the kubelet sees them until its stream ends.
// The kubelet refuses the stream with FailedPrecondition while it does not know
// its pods; a pod is DELETED only after its containers have stopped.
func watchKubelet(ctx context.Context, conn *grpc.ClientConn, into *store) error {
	defer into.distrust()
	stream, err := pods.NewPodsClient(conn).WatchPods(ctx, &pods.WatchPodsRequest{})
	if err != nil {
		return err
	}
	var first []Pod // until INITIAL_SYNC_COMPLETE
	syncing := true
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		if event.GetType() == pods.EventType_INITIAL_SYNC_COMPLETE {
			into.replace(first)
			first, syncing = nil, false
			continue
		}
		pod, err := decodePod(event.GetPod())
		if err != nil {
			return err
		}
		switch {
		case event.GetType() == pods.EventType_DELETED:
			first = slices.DeleteFunc(first, func(p Pod) bool { return p.UID == pod.UID })
			into.remove(pod.UID, true)
		case syncing:
			first = append(first, pod)
		default:
			into.put(pod)
		}
	}
}
