package witness

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"k8s.io/client-go/dynamic"

	"akri.sh/akri/agent/serve/slots"
)

const (
	// listsApart is the time between the two lists that are needed where there is
	// no Pods API: right after its start the kubelet's list is empty.
	listsApart = time.Second
	// reconnectAfter is how long a broken stream of pods rests; pods cannot be
	// judged meanwhile.
	reconnectAfter = 500 * time.Millisecond
	// lookAgain is how often the kubelet's Pods API is looked for while it is not
	// there.
	lookAgain = 10 * time.Second
)

// Witness observes slots by way of the kubelet and the pods of the node.
type Witness struct {
	lister    *Lister
	conn      *grpc.ClientConn
	podsPath  string
	byKubelet *store
	byAPI     *store
	api       apiPods
	log       *slog.Logger
	changed   chan struct{}
}

// New returns a witness for a node, whose kubelet's root folder is given. The
// client is used only where the kubelet has no Pods API.
func New(kubeletDir, node string, client dynamic.Interface, log *slog.Logger) (*Witness, error) {
	lister, err := NewLister(kubeletDir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(kubeletDir, podsSocket)
	conn, err := dial(path)
	if err != nil {
		return nil, errors.Join(err, lister.Close())
	}
	return &Witness{
		lister: lister, conn: conn, podsPath: path,
		byKubelet: newStore(), byAPI: newStore(),
		api: apiPods{client, node}, log: log,
		changed: make(chan struct{}, 1),
	}, nil
}

// Changed is ready for reading when a pod that asks for our resources changed.
func (w *Witness) Changed() <-chan struct{} { return w.changed }

// Run follows the node's pods until ctx ends: as the kubelet sees them where it
// has the Pods API, else as the API server does.
func (w *Witness) Run(ctx context.Context) error {
	defer func() {
		_ = w.lister.Close() // only to end its goroutines
		_ = w.conn.Close()
	}()
	for ctx.Err() == nil {
		var err error
		if w.hasPodsAPI() {
			err = w.follow(ctx, w.byKubelet, func(ctx context.Context) error {
				return watchKubelet(ctx, w.conn, w.byKubelet)
			})
		} else {
			err = w.follow(ctx, w.byAPI, w.watchAPI)
		}
		if err != nil && ctx.Err() == nil {
			w.log.Debug("the stream of pods ended", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnectAfter):
		}
	}
	return nil
}

// follow runs a watch and passes on that its pods changed.
func (w *Witness) follow(ctx context.Context, s *store, watch func(context.Context) error) error {
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

// watchAPI follows the pods in the API server until the kubelet has a Pods API.
func (w *Witness) watchAPI(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.api.watch(ctx, w.byAPI) }()
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-look.C:
			if w.hasPodsAPI() {
				cancel()
				return <-done
			}
		}
	}
}

func (w *Witness) hasPodsAPI() bool {
	_, err := os.Stat(w.podsPath)
	return err == nil
}

// Observe looks which slots containers have. own are the slots this node owns;
// of those that the list lacks it is said whether they have ended. It takes a
// second where the kubelet has no Pods API and a slot is missing from the list.
func (w *Witness) Observe(ctx context.Context, own []slots.Ref) (Observation, error) {
	first, err := w.lister.List(ctx)
	if err != nil {
		return Observation{}, err
	}
	if w.hasPodsAPI() {
		pods, trusted := w.byKubelet.snapshot()
		if !trusted {
			return undecided(own, first), nil
		}
		return Account(own, []Listing{first}, pods), nil
	}
	if len(undecided(own, first).Open) == 0 {
		return undecided(own, first), nil
	}
	select {
	case <-ctx.Done():
		return Observation{}, ctx.Err()
	case <-time.After(listsApart):
	}
	second, err := w.lister.List(ctx)
	if err != nil {
		return Observation{}, err
	}
	if _, err := w.api.list(ctx, w.byAPI); err != nil {
		return undecided(own, second), err
	}
	pods, _ := w.byAPI.snapshot()
	return Account(own, []Listing{first, second}, pods), nil
}

// undecided is what a list says without the pods: who has a slot, not who has
// none.
func undecided(own []slots.Ref, listing Listing) Observation {
	o := Account(own, []Listing{listing}, nil)
	o.Open, o.Ended = o.Ended, nil
	return o
}
