package observer

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/wait"

	"akri.sh/akri/internal/backoff"
)

const (
	// maxFailures is how often the Pods API of a kubelet that serves its list may fail
	// before the API server is used instead. With the back-off this takes 8 s.
	maxFailures = 5
	// syncTimeout bounds how long the Pods API may take to show all Pods.
	syncTimeout = 10 * time.Second
	// resyncInterval is the mean time after which the stream of the Pods API is
	// opened again: the kubelet drops events of a client if it has too many.
	resyncInterval = 5 * time.Minute
	// initializingDelay is the mean delay between attempts while the kubelet does not
	// know its Pods yet.
	initializingDelay = 500 * time.Millisecond
	// probeInterval is how often the agent looks for the socket of a Pods API that the
	// kubelet does not have.
	probeInterval = 10 * time.Second
	// minRetryDelay, maxKubeletDelay and maxAPIDelay bound the delay between attempts to open a
	// stream. While the kubelet is down, outageDelay does.
	minRetryDelay   = 250 * time.Millisecond
	maxKubeletDelay = 5 * time.Minute
	outageDelay     = time.Second
	maxAPIDelay     = time.Minute
)

var (
	errNoSocket = errors.New("the kubelet has no socket for the Pods API")
	errSilent   = errors.New("the Pods API did not show all Pods within " + syncTimeout.String())
	errResync   = errors.New("resync") // ends a stream that works
)

// podSource is where the Pods are read: from the kubelet or from the API server.
type podSource struct {
	mu       sync.Mutex
	byAPI    bool
	switched chan struct{} // closed when byAPI changes
}

func newSource(byAPI bool) *podSource { return &podSource{byAPI: byAPI, switched: make(chan struct{})} }

// current reports whether the Pods are read from the API server. The channel is closed
// when that changes.
func (s *podSource) current() (byAPI bool, switched <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byAPI, s.switched
}

// use changes the source. It reports whether that is a change.
func (s *podSource) use(byAPI bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byAPI == byAPI {
		return false
	}
	s.byAPI = byAPI
	close(s.switched)
	s.switched = make(chan struct{})
	return true
}

// followKubelet keeps the stream of the kubelet's Pods API open until ctx is done, and
// decides which source is used. A kubelet that is initializing serves the Pods API:
// nothing is freed until it knows its Pods.
func (o *Observer) followKubelet(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		served, err := o.watchKubelet(ctx)
		if ctx.Err() != nil {
			return
		}
		if served || status.Code(err) == codes.FailedPrecondition {
			failures = 0
		}
		var delay time.Duration
		switch byAPI, _ := o.source.current(); {
		case errors.Is(err, errResync):
			continue
		case status.Code(err) == codes.FailedPrecondition:
			o.useKubelet()
			delay = wait.Jitter(initializingDelay/2, 2)
		case errors.Is(err, errNoSocket) && byAPI:
			delay = wait.Jitter(probeInterval*3/4, 0.5)
		case !served && !o.kubeletServes(ctx):
			delay = wait.Jitter(outageDelay/2, 1)
		default:
			if failures++; failures == maxFailures && o.source.use(true) {
				o.log.Warn("The kubelet does not serve its Pods API; using the node's Pods of the API server until it does",
					"err", err, "remedy", "check that the agent may use pods-api/pods-api.sock in the kubelet's directory, or remove the socket "+
						"if the kubelet's feature gate PodsAPI is off")
			}
			delay = retryDelay(maxKubeletDelay, failures-1)
		}
		o.report()
		backoff.Sleep(ctx, delay)
	}
}

// useKubelet makes the Pods API the source.
func (o *Observer) useKubelet() {
	if o.source.use(false) {
		o.log.Info("The kubelet serves its Pods API; using its Pods instead of the API server's")
	}
}

// kubeletServes reports whether the kubelet serves its list. Otherwise it is down, or
// starting, and a failure of the Pods API has no meaning.
func (o *Observer) kubeletServes(ctx context.Context) bool {
	o.beforeList(ctx)
	_, err := o.lister.List(ctx)
	return err == nil
}

// watchKubelet watches the Pods in the kubelet's Pods API until the stream ends, and
// returns why it ended. It reports whether the stream has shown all Pods.
func (o *Observer) watchKubelet(ctx context.Context) (served bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer func() {
		if !errors.Is(err, errResync) {
			o.byKubelet.trust(false)
			o.report()
		}
	}()
	if !o.pods.Available() {
		return false, errNoSocket
	}
	timer := time.AfterFunc(syncTimeout, func() { cancel(errSilent) })
	defer func() { timer.Stop() }()
	resync := o.resync*3/4 + rand.N(o.resync/2)
	err = o.pods.Watch(ctx, newKubeletPods(o.byKubelet, func() {
		timer.Stop()
		served = true
		o.useKubelet()
		o.report()
		timer = time.AfterFunc(resync, func() { cancel(errResync) })
	}))
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return served, err
}

// followAPI watches the Pods in the API server while that is the source, until ctx is
// done.
func (o *Observer) followAPI(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		byAPI, switched := o.source.current()
		if !byAPI {
			select {
			case <-ctx.Done():
			case <-switched:
			}
			continue
		}
		err := o.watchAPI(ctx, switched, func() { failures = 0 })
		o.report()
		if byAPI, _ := o.source.current(); ctx.Err() != nil || !byAPI {
			continue
		}
		o.health.readPods(err)
		backoff.Sleep(ctx, retryDelay(maxAPIDelay, failures))
		failures++
	}
}

// watchAPI watches the Pods in the API server until the watch ends or another source is
// used. It calls synced when all Pods are known.
func (o *Observer) watchAPI(ctx context.Context, switched <-chan struct{}, synced func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-ctx.Done():
		case <-switched:
			cancel()
		}
	})
	defer waiting.Wait()
	defer cancel()
	return o.api.watch(ctx, o.byAPI, func() {
		synced()
		o.health.readPods(nil)
		o.report()
	})
}

// retryDelay returns how long to wait before a stream is opened again that broke some
// times before.
func retryDelay(limit time.Duration, failures int) time.Duration {
	return wait.Jitter(backoff.Delay(minRetryDelay, limit, failures), 0.5)
}
