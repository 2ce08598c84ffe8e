package deviceplugin

import (
	"context"
	"math/rand/v2"
	"time"

	"akri.sh/akri/agent/serve/slots"
)

const (
	// gather is how long triggers are gathered before the pods are looked at: the
	// kubelet's list follows the event of a pod within some 10 ms.
	gather = 200 * time.Millisecond
	// soonest is how soon the pods are looked at again while something is open,
	// regular how often without any trigger.
	soonest = time.Second
	regular = 10 * time.Second
)

// look asks for a look at the pods soon.
func (n *Node) look() {
	select {
	case n.trigger <- struct{}{}:
	default:
	}
}

// observe looks at the node's pods: after something happened, again while it is
// open whether a slot has ended, and every now and then.
func (n *Node) observe(ctx context.Context) {
	wait := gather
	open := soonest
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-n.trigger:
			timer.Stop()
			open = soonest
			if !rest(ctx, gather) {
				return
			}
		case <-n.witness.Changed():
			timer.Stop()
			open = soonest
			if !rest(ctx, gather) {
				return
			}
		case <-timer.C:
		}
		wait = regular - regular/10 + rand.N(regular/5)
		if again := n.round(ctx); again {
			wait, open = min(open, wait), 2*open
		}
	}
}

// round makes one observation. It reports whether another one is worthwhile.
func (n *Node) round(ctx context.Context) (again bool) {
	var own []slots.Ref
	var since slots.Generation
	var began time.Duration
	ready := make(chan struct{})
	n.queue.post(func() {
		own, since, began = n.machine.Held(), n.machine.Generation(), n.now()
		close(ready)
	})
	select {
	case <-ready:
	case <-ctx.Done():
		return false
	}
	o, err := n.witness.Observe(ctx, own)
	if err != nil {
		n.log.Debug("the pods of the node cannot be observed", "error", err)
	}
	if len(o.Held)+len(o.Ended) > 0 {
		n.queue.post(func() {
			n.step(slots.PodsWitnessed{Since: since, Began: began, Held: o.Held, Ended: o.Ended})
		})
	}
	return len(o.Open)+len(o.Ended) > 0 || err != nil && len(own) > 0
}

func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
