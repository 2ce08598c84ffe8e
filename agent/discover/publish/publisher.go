package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/discover/streams"
	"akri.sh/akri/agent/instances"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/deadline"
	"akri.sh/akri/internal/text"
)

const (
	parallelWrites = 8
	// maxAttempts is how often a decision is made before the next pass: with the cached
	// Instance, and with the current one.
	maxAttempts = 3
)

// Publisher writes the Instances of one node. It is safe for concurrent use with
// different Configurations.
type Publisher struct {
	client    dynamic.NamespaceableResourceInterface
	instances *instances.Store
	node      string
	manager   string
	log       *slog.Logger
	gate      *gate
	counts    *counts
	awaited   awaited
}

// New returns a publisher for a node that writes as a field manager.
func New(client dynamic.Interface, store *instances.Store, node, manager string, log *slog.Logger) *Publisher {
	return &Publisher{
		client: client.Resource(v0.InstanceResource), instances: store, node: node, manager: manager, log: log,
		gate: newGate(), counts: newCounts(store.All), awaited: awaited{allowance: streams.ReturnAllowance},
	}
}

// Result is the outcome of [Publisher.Publish].
type Result struct {
	// Devices are the devices whose Instances exist and list this node.
	Devices []device.Device
	// Next is the time to publish again without an event; zero for never.
	Next time.Time
	// Refused are the reasons why devices are not published, which a user must resolve: they
	// are too large or too many, they change too often, or the API server refuses their
	// Instances.
	Refused []string
}

func (r *Result) again(at time.Time) { r.Next = deadline.Earliest(r.Next, at) }

// Publish creates, updates and deletes the Instances of a Configuration to match a
// snapshot of its devices. After an error it continues with the other Instances.
func (p *Publisher) Publish(ctx context.Context, configuration *v0.Configuration, snapshot streams.Snapshot) (Result, error) {
	here := nodeView{node: p.node, configuration: configuration, now: time.Now()}
	have := p.instances.Of(here.name())
	candidates := here.candidates(snapshot.Devices, have)
	kept, gone, next := p.awaited.split(here.name(), unclaimed(have, candidates), snapshot, here.now)
	kept, shortage, full := p.counts.fit(here, candidates, kept)

	result := Result{Next: next}
	if full {
		result.again(here.now.Add(fullDelay))
	}
	var errs []error
	for i, o := range inParallel(candidates, func(c candidate) outcome { return p.one(ctx, here, c) }) {
		c := &candidates[i]
		if o.instance != nil && !c.withheld && slices.Contains(o.instance.Spec.Nodes, p.node) { // or others alone describe the device
			result.Devices = append(result.Devices, published(configuration, o.instance, c.device))
		}
		if o.why == refused {
			c.refused = o.err.Error()
		} else {
			errs = append(errs, o.err)
		}
		result.again(o.until)
	}
	for _, instance := range kept {
		result.Devices = append(result.Devices, adopted(configuration, instance))
	}
	slices.SortFunc(result.Devices, func(a, b device.Device) int { return cmp.Compare(a.Instance.Name, b.Instance.Name) })
	result.Refused = refusals(candidates)
	errs = append(errs, p.dropAll(ctx, here, gone, &result))

	changing, end := p.gate.failure(here.name(), time.Now())
	result.again(end)
	result.Refused = slices.DeleteFunc(append(result.Refused, shortage, changing), func(reason string) bool { return reason == "" })
	return result, errors.Join(errs...)
}

// unclaimed returns the Instances that no device has.
func unclaimed(have []*v0.Instance, candidates []candidate) (list []*v0.Instance) {
	claimed := map[string]bool{}
	for _, c := range candidates {
		claimed[c.name] = true
	}
	for _, instance := range have {
		if !claimed[instance.Name] {
			list = append(list, instance)
		}
	}
	return list
}

// Withdraw removes this node from all Instances of a Configuration that is not
// served. Those that other nodes see are left to garbage collection if the
// Configuration no longer exists: otherwise, each node would write each of them.
//
// It returns when to withdraw again without an event; zero for never.
func (p *Publisher) Withdraw(ctx context.Context, configuration types.NamespacedName, exists bool) (time.Time, error) {
	p.awaited.absent.Delete(configuration)
	p.counts.free(configuration)
	of := &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: configuration.Namespace, Name: configuration.Name}}
	var result Result
	err := p.dropAll(ctx, nodeView{node: p.node, configuration: of, collected: !exists}, p.instances.Of(configuration), &result)
	for _, reason := range result.Refused {
		err = errors.Join(err, errors.New(reason))
	}
	return result.Next, err
}

// dropAll removes this node from Instances of a Configuration. It adds to the result when to
// try again if it may not write all now, and what the API server refuses.
func (p *Publisher) dropAll(ctx context.Context, here nodeView, list []*v0.Instance, result *Result) error {
	var errs []error
	for _, v := range inParallel(list, func(have *v0.Instance) verdict { return p.drop(ctx, here, have) }) {
		result.again(v.until)
		if v.why == refused {
			result.Refused = append(result.Refused, v.err.Error())
		} else {
			errs = append(errs, v.err)
		}
	}
	return errors.Join(errs...)
}

// inParallel calls do for each element, a few at a time, and returns the results in the same
// order.
func inParallel[E, R any](list []E, do func(E) R) []R {
	results := make([]R, len(list))
	group := errgroup.Group{}
	group.SetLimit(parallelWrites)
	for i, element := range list {
		group.Go(func() error {
			results[i] = do(element)
			return nil
		})
	}
	_ = group.Wait() // errors are in the results
	return results
}

// outcome is what came of a device or an Instance: the Instance, or nil if there is none,
// and why it is not as it should be yet.
type outcome struct {
	instance *v0.Instance
	verdict
}

// one creates or corrects the Instance of a device. This node may not be listed in the
// Instance yet.
func (p *Publisher) one(ctx context.Context, here nodeView, c candidate) outcome {
	if c.refused != "" {
		return outcome{instance: c.have} // it stays as it is
	}
	d, name := c.device, c.name
	o := p.settle(ctx, here, c.have, func(have *v0.Instance) (Step, error) {
		if have != nil && !here.belongsTo(have, d) { // known since an attempt to create ours
			long := v0.LongInstanceName(here.configuration.Name, d.ID, here.node, d.Shared)
			if name == long {
				return Step{}, nameTaken(have)
			}
			have, name = nil, long
		}
		return here.present(d, have, name), nil
	})
	if o.err != nil {
		o.err = fmt.Errorf("publish device %q: %w", c.shownID(), o.err)
	}
	if o.instance != nil && !here.belongsTo(o.instance, d) {
		o.instance = nil // it has the short name of this device's
	}
	return o
}

// drop removes this node from an Instance, as far as it may.
func (p *Publisher) drop(ctx context.Context, here nodeView, have *v0.Instance) verdict {
	uid := have.UID
	v := p.settle(ctx, here, have, func(have *v0.Instance) (Step, error) {
		if have == nil || have.UID != uid {
			return Step{Action: Wait}, nil
		}
		return here.absent(have), nil
	}).verdict
	if v.err != nil {
		v.err = fmt.Errorf("remove node %s from Instance %s: %w", here.node, instances.NameOf(have), v.err)
	}
	return v
}

// settle takes the step that decide returns for an Instance, if the gate permits that: first
// as the cache has it, and then, if that has changed, as the API server has it.
func (p *Publisher) settle(
	ctx context.Context, here nodeView, have *v0.Instance, decide func(have *v0.Instance) (Step, error),
) outcome {
	var first, step Step
	for attempt := range maxAttempts {
		var err error
		if step, err = decide(have); err != nil {
			return outcome{verdict: p.gate.hold(first, verdict{why: refused, err: err}, time.Now())}
		}
		if step.Action == Keep || step.Action == Wait {
			return outcome{have, p.unwatched(step)}
		}
		if attempt == 0 {
			first = step
			if v := p.gate.ask(here.name(), step, time.Now()); v.why != 0 {
				return outcome{have, v}
			}
		}
		written, err := p.write(ctx, step)
		if err == nil {
			p.gate.wrote(step, time.Now())
			p.log.Info("Wrote the Instance", "instance", step.name(), "action", step.Action)
			return outcome{instance: written} // after a deletion, the event triggers the creation
		}
		if hasChanged(err) {
			current, readErr := p.instances.Read(ctx, step.name())
			if readErr != nil {
				return outcome{have, verdict{why: failed, err: readErr}}
			}
			if apierrors.IsAlreadyExists(err) || !sameVersion(current, step.Have) {
				have = current // another agent changed it first
				continue
			}
		}
		if isRefusal(err) {
			return outcome{have, p.gate.hold(first, verdict{why: refused, err: err}, time.Now())}
		}
		return outcome{have, verdict{why: failed, err: err}}
	}
	return outcome{have, p.gate.hold(step, verdict{why: contended}, time.Now())}
}

// unwatched returns when to look again at the Instance of a device that is not in the
// selection of this node's agent, because no event will come.
func (p *Publisher) unwatched(step Step) verdict {
	if step.Want != nil {
		if _, watched := step.Have.Labels[v0.NodeLabel(p.node)]; !watched {
			return p.gate.hold(step, verdict{why: contended}, time.Now())
		}
	}
	return verdict{}
}

// hasChanged reports whether a request may have failed because the Instance is not as
// it was read. A test of a patch that fails, and a change that the policy for agents
// denies, look like a rejection of the request.
func hasChanged(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) ||
		apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
}

// sameVersion reports whether two versions of an Instance, which may be nil, are the
// same.
func sameVersion(a, b *v0.Instance) bool {
	return a == nil && b == nil || a != nil && b != nil && a.ResourceVersion == b.ResourceVersion
}

// nameTaken returns the error about an Instance that has the longer name of a device's
// Instance and belongs to another device. No two digests collide twice: somebody has
// chosen the name.
func nameTaken(other *v0.Instance) error {
	node := "unknown"
	if len(other.Spec.Nodes) > 0 {
		node = other.Spec.Nodes[0]
	}
	return fmt.Errorf("both names of its Instance are taken: Instance %s belongs to device %q of node %s: delete it, and stop that "+
		"node's agent if it comes back", instances.NameOf(other), text.Truncate(other.Annotations[v0.AnnotationDeviceID], maxShown),
		text.Truncate(node, maxShown))
}

// isRefusal reports whether the API server does not accept an Instance as it is.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsRequestEntityTooLargeError(err)
}
