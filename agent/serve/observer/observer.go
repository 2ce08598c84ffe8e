package observer

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/client-go/dynamic"

	"akri.sh/akri/agent/serve/kubelet"
	"akri.sh/akri/agent/serve/slots"
)

const (
	// listInterval is the time between the two lists that are needed without the
	// Pods API: right after the kubelet starts, its list is empty.
	listInterval = time.Second
	// reconnectDelay is the delay before a broken stream of pods is reopened.
	// Meanwhile, the pods are unknown.
	reconnectDelay = 500 * time.Millisecond
	// probeInterval is how often the agent looks for a Pods API that the kubelet
	// does not have yet.
	probeInterval = 10 * time.Second
)

// Observer observes slots through the kubelet and the pods of the node.
type Observer struct {
	lister    *kubelet.Lister
	pods      *kubelet.Pods
	byKubelet *store
	byAPI     *store
	api       apiPods
	log       *slog.Logger
	changed   chan struct{}
}

// New returns an observer for a node whose kubelet has the given root directory. The
// client is used only if the kubelet has no Pods API.
func New(kubeletDir, node string, client dynamic.Interface, log *slog.Logger) (*Observer, error) {
	lister, err := kubelet.NewLister(kubeletDir)
	if err != nil {
		return nil, err
	}
	pods, err := kubelet.NewPods(kubeletDir)
	if err != nil {
		return nil, errors.Join(err, lister.Close())
	}
	return &Observer{
		lister: lister, pods: pods,
		byKubelet: newStore(), byAPI: newStore(),
		api: apiPods{client, node}, log: log,
		changed: make(chan struct{}, 1),
	}, nil
}

// Changed returns a channel that signals changes of pods that request Akri's
// resources.
func (w *Observer) Changed() <-chan struct{} { return w.changed }

// Run watches the node's pods until ctx is done: through the kubelet's Pods API if
// there is one, otherwise through the API server.
func (w *Observer) Run(ctx context.Context) error {
	defer func() {
		_ = w.lister.Close() // only to end its goroutines
		_ = w.pods.Close()
	}()
	for ctx.Err() == nil {
		var err error
		if w.pods.Available() {
			err = w.follow(ctx, w.byKubelet, w.watchKubelet)
		} else {
			err = w.follow(ctx, w.byAPI, w.watchAPI)
		}
		if err != nil && ctx.Err() == nil {
			w.log.Debug("The stream of pods ended", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnectDelay):
		}
	}
	return nil
}

// follow runs a watch and forwards the store's change signals.
func (w *Observer) follow(ctx context.Context, s *store, watch func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- watch(ctx) }()
	for {
		select {
		case <-s.changed:
			select {
			case w.changed <- struct{}{}:
			default:
			}
		case err := <-done:
			return err
		}
	}
}

// watchKubelet watches the pods in the kubelet's Pods API.
func (w *Observer) watchKubelet(ctx context.Context) error {
	defer w.byKubelet.distrust()
	return w.pods.Watch(ctx, newKubeletPods(w.byKubelet))
}

// watchAPI watches the pods in the API server until the kubelet has a Pods API.
func (w *Observer) watchAPI(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.api.watch(ctx, w.byAPI) }()
	probe := time.NewTicker(probeInterval)
	defer probe.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-probe.C:
			if w.pods.Available() {
				cancel()
				return <-done
			}
		}
	}
}

// Observe returns which slots containers have. For each slot of own, the slots
// that this node owns, it decides whether it has ended if the list lacks it.
// Without the Pods API that takes a second.
func (w *Observer) Observe(ctx context.Context, own []slots.Ref) (Observation, error) {
	first, err := w.lister.List(ctx)
	if err != nil {
		return Observation{}, err
	}
	if w.pods.Available() {
		pods, trusted := w.byKubelet.snapshot()
		if !trusted {
			return undecided(own, first), nil
		}
		return account(own, []kubelet.Listing{first}, pods), nil
	}
	if len(undecided(own, first).Open) == 0 {
		return undecided(own, first), nil
	}
	select {
	case <-ctx.Done():
		return Observation{}, ctx.Err()
	case <-time.After(listInterval):
	}
	second, err := w.lister.List(ctx)
	if err != nil {
		return Observation{}, err
	}
	if _, err := w.api.list(ctx, w.byAPI); err != nil {
		return undecided(own, second), err
	}
	pods, _ := w.byAPI.snapshot()
	return account(own, []kubelet.Listing{first, second}, pods), nil
}

// undecided returns what a list shows without the pods: which containers have a
// slot, but not which slots have ended.
func undecided(own []slots.Ref, listing kubelet.Listing) Observation {
	o := account(own, []kubelet.Listing{listing}, nil)
	o.Open, o.Ended = o.Ended, nil
	return o
}
