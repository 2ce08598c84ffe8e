package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	client     dynamic.NamespaceableResourceInterface
	instances  *instances.Store
	node       string
	manager    string
	log        *slog.Logger
	pace       *pace
	rejections *rejections
	throttles  *throttles
	results    results
	budget     *budget
	awaited    awaited
	reserved   sync.Once
	retry      func(types.NamespacedName)
}

// New returns a publisher for a node that writes as a field manager.
func New(client dynamic.Interface, store *instances.Store, node, manager string, log *slog.Logger) *Publisher {
	return &Publisher{
		client: client.Resource(v0.InstanceResource), instances: store, node: node, manager: manager, log: log,
		pace: newPace(), rejections: newRejections(), throttles: newThrottles(), results: newResults(), budget: newBudget(),
		awaited: awaited{allowance: streams.ReturnAllowance},
		retry:   func(types.NamespacedName) {},
	}
}

// WhenRoom sets a function, which must not block, that is called with each Configuration
// whose refused devices may fit now. It must be called before Publish.
func (p *Publisher) WhenRoom(retry func(configuration types.NamespacedName)) { p.retry = retry }

// Result is the outcome of [Publisher.Publish].
type Result struct {
	// Devices are the devices whose Instances exist and list this node.
	Devices []device.Device
	// Next is the time to publish again without an event; zero for never.
	Next time.Time
	// Refused are the reasons why devices are not published, which a user must resolve:
	// they are too large, they change too often, or the API server rejects their Instances.
	Refused []string
}

func (r *Result) again(at time.Time) { r.Next = deadline.Earliest(r.Next, at) }

// Publish creates, updates and deletes the Instances of a Configuration to match a
// snapshot of its devices. After an error it continues with the other Instances.
func (p *Publisher) Publish(ctx context.Context, configuration *v0.Configuration, snapshot streams.Snapshot) (Result, error) {
	here := nodeView{node: p.node, configuration: configuration, now: time.Now()}
	name := here.name()
	p.results.clear(name) // before the Instances are read: no event is missed
	have := p.instances.Of(name)

	candidates := here.candidates(snapshot.Devices, have)
	kept, gone, next := p.awaited.split(name, unclaimed(have, candidates), snapshot, here.now)
	kept, shortage := p.allot(here, candidates, kept)

	result := Result{Next: next}
	var errs []error
	var mu sync.Mutex // guards result and errs
	matching := map[types.NamespacedName]match{}
	group := errgroup.Group{}
	group.SetLimit(parallelWrites)
	for _, c := range candidates {
		if c.withheld {
			continue
		}
		group.Go(func() error {
			instance, later, err := c.have, time.Time{}, error(nil) // if the device is refused, its Instance stays as it is
			if c.refused == "" {
				instance, later, err = p.ensure(ctx, here, c.known.Device, c.have, c.name)
			}
			mu.Lock()
			defer mu.Unlock()
			if instance != nil && slices.Contains(instance.Spec.Nodes, p.node) { // or others alone describe the device
				offered := published(configuration, instance, c.known)
				result.Devices = append(result.Devices, offered)
				if c.refused == "" && err == nil && later.IsZero() {
					matching[offered.Instance] = match{configuration, c.known, offered}
				}
			}
			result.again(later)
			switch {
			case isRefusal(err):
				result.Refused = append(result.Refused, err.Error())
			case err != nil:
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = group.Wait() // failures are in errs

	for _, instance := range kept {
		result.Devices = append(result.Devices, adopted(configuration, instance))
	}
	later, err := p.dropAll(ctx, here, gone)
	result.again(later)
	errs = append(errs, err)
	slices.SortFunc(result.Devices, func(a, b device.Device) int { return compareNames(a.Instance, b.Instance) })
	slices.Sort(result.Refused)
	result.Refused = append(refusals(candidates), result.Refused...)
	if shortage != "" {
		result.Refused = append(result.Refused, shortage)
	}
	if failure, next := p.throttles.report(name, time.Now()); failure != "" {
		result.Refused = append(result.Refused, failure)
		result.again(next)
	}
	p.results.set(name, matching)
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

// allot refuses what does not fit into the node's budget. See [nodeView.allot].
func (p *Publisher) allot(here nodeView, list []candidate, adoptable []*v0.Instance) (fitting []*v0.Instance, shortage string) {
	p.spend(here.name(), func(a *account) { fitting, shortage = here.allot(a, list, adoptable) })
	return fitting, shortage
}

// spend settles the cost of a Configuration, and has those published again that may have
// room now.
func (p *Publisher) spend(name types.NamespacedName, decide func(*account)) {
	p.reserved.Do(func() { p.budget.reserve(p.instances.All()) })
	for _, other := range p.budget.settle(name, decide) {
		p.retry(other)
	}
}

// Withdraw removes this node from all Instances of a Configuration that is not
// served. Those that other nodes see are left to garbage collection if the
// Configuration no longer exists: otherwise, each node would write each of them.
//
// It returns when to withdraw again without an event; zero for never.
func (p *Publisher) Withdraw(ctx context.Context, configuration types.NamespacedName, exists bool) (time.Time, error) {
	p.results.clear(configuration)
	p.throttles.forget(configuration)
	p.awaited.absent.Delete(configuration)
	p.spend(configuration, func(*account) {})
	return p.dropAll(ctx, nodeView{node: p.node, collected: !exists}, p.instances.Of(configuration))
}

// dropAll removes this node from Instances. It returns when to try again if it may not
// write all now.
func (p *Publisher) dropAll(ctx context.Context, here nodeView, list []*v0.Instance) (time.Time, error) {
	var next Result
	var mu sync.Mutex // guards next
	err := inParallel(list, func(instance *v0.Instance) error {
		later, err := p.drop(ctx, here, instance)
		mu.Lock()
		defer mu.Unlock()
		next.again(later)
		return err
	})
	return next.Next, err
}

// inParallel calls write for each Instance, a few at a time, and returns the errors.
func inParallel(list []*v0.Instance, write func(*v0.Instance) error) error {
	errs := make([]error, len(list))
	group := errgroup.Group{}
	group.SetLimit(parallelWrites)
	for i, instance := range list {
		group.Go(func() error {
			errs[i] = write(instance)
			return nil
		})
	}
	_ = group.Wait() // failures are in errs
	return errors.Join(errs...)
}

// ensure creates or corrects the Instance of a device. It returns the Instance, even
// with an error, or nil if there is none, and when to try again if it may not write
// now, or if the API server rejects the Instance. This node may not be listed in the
// Instance yet.
func (p *Publisher) ensure(
	ctx context.Context, here nodeView, d streams.Device, have *v0.Instance, name string,
) (instance *v0.Instance, later time.Time, err error) {
	key, step := types.NamespacedName{Namespace: here.configuration.Namespace, Name: name}, here.present(d, have, name)
	if later, err = p.rejections.standing(key, step, time.Now()); err != nil {
		return have, later, err
	}
	instance, later, err = p.attempt(ctx, here, d, have, name)
	switch {
	case isRefusal(err):
		later = p.rejections.add(key, step, err, time.Now())
	case err == nil && later.IsZero():
		p.rejections.forget(key)
	case err == nil && !p.pace.contends(key, later):
		p.throttles.add(here.name(), d.ID, p.pace.repeats(key, later), time.Now())
	}
	return instance, later, err
}

// attempt is ensure without a regard to earlier rejections.
func (p *Publisher) attempt(
	ctx context.Context, here nodeView, d streams.Device, have *v0.Instance, name string,
) (instance *v0.Instance, later time.Time, err error) {
	key := types.NamespacedName{Namespace: here.configuration.Namespace, Name: name}
	for attempt := range maxAttempts {
		step := here.present(d, have, key.Name)
		if step.Action == Keep || step.Action == Wait {
			if _, watched := have.Labels[v0.NodeLabel(p.node)]; !watched { // no event will come
				return have, p.pace.contended(key, time.Now()), nil
			}
			return have, time.Time{}, nil
		}
		if attempt == 0 {
			if later := p.pace.admit(key, step.Action, time.Now()); !later.IsZero() {
				return have, later, nil
			}
			p.throttles.wrote(here.name(), time.Now())
		}
		written, err := p.write(ctx, step)
		switch {
		case err == nil && step.Action == Delete:
			return nil, time.Time{}, nil // the deletion event triggers the creation
		case err == nil:
			p.log.Info("Published the Instance", "instance", key, "device", d.ID, "new", step.Action == Create)
			return written, time.Time{}, nil
		case !hasChanged(err):
			p.pace.failed(key)
			return have, time.Time{}, fmt.Errorf("publish Instance %s of device %q: %w", key, d.ID, err)
		}
		// Another agent changed the Instance first, or the API server rejects the request.
		rejected := err
		if have, err = p.get(ctx, key); err != nil {
			return step.Have, time.Time{}, err
		}
		long := v0.LongInstanceName(here.configuration.Name, d.ID, here.node, d.Shared)
		switch {
		case have != nil && !here.belongsTo(have, d) && key.Name == long:
			p.pace.failed(key)
			return nil, time.Time{}, nameTaken(have, d)
		case have != nil && !here.belongsTo(have, d):
			have, key.Name = nil, long
		case sameVersion(have, step.Have) && !apierrors.IsAlreadyExists(rejected):
			p.pace.failed(key)
			return have, time.Time{}, fmt.Errorf("publish Instance %s of device %q: %w", key, d.ID, rejected)
		}
	}
	return have, p.pace.contended(key, time.Now()), nil
}

// drop removes this node from an Instance, as far as it may. It returns when to try
// again if it may not write now.
func (p *Publisher) drop(ctx context.Context, here nodeView, have *v0.Instance) (later time.Time, err error) {
	key, uid := instances.NameOf(have), have.UID
	for attempt := range maxAttempts {
		step := here.absent(have)
		if step.Action == Wait {
			return time.Time{}, nil
		}
		if attempt == 0 {
			if later := p.pace.admit(key, step.Action, time.Now()); !later.IsZero() {
				return later, nil
			}
			p.throttles.wrote(types.NamespacedName{Namespace: have.Namespace, Name: have.Spec.ConfigurationName}, time.Now())
		}
		_, err := p.write(ctx, step)
		if err == nil && step.Action == Leave {
			p.log.Info("Left the Instance", "instance", key)
		}
		if err == nil {
			return time.Time{}, nil
		}
		if !hasChanged(err) {
			p.pace.failed(key)
			return time.Time{}, fmt.Errorf("remove node %s from Instance %s: %w", here.node, key, err)
		}
		rejected := err
		if have, err = p.get(ctx, key); err != nil {
			return time.Time{}, err
		}
		if have == nil || have.UID != uid {
			return time.Time{}, nil
		}
		if sameVersion(have, step.Have) {
			p.pace.failed(key)
			return time.Time{}, fmt.Errorf("remove node %s from Instance %s: %w", here.node, key, rejected)
		}
	}
	return p.pace.contended(key, time.Now()), nil
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

// errNameTaken is the reason why a device has no Instance if both of its names are taken.
var errNameTaken = errors.New("both names of its Instance are taken")

// nameTaken returns the error about an Instance that has the longer name of a device's
// Instance and belongs to another device. No two digests collide twice: somebody has
// chosen the name.
func nameTaken(other *v0.Instance, d streams.Device) error {
	node := "unknown"
	if len(other.Spec.Nodes) > 0 {
		node = other.Spec.Nodes[0]
	}
	return fmt.Errorf("publish device %q: %w: Instance %s belongs to device %q of node %s: delete it, and stop that node's agent "+
		"if it comes back", text.Truncate(d.ID, maxShown), errNameTaken, instances.NameOf(other),
		text.Truncate(other.Annotations[v0.AnnotationDeviceID], maxShown), text.Truncate(node, maxShown))
}

// isRefusal reports whether retrying a rejected Instance is pointless.
func isRefusal(err error) bool {
	return errors.Is(err, errNameTaken) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) ||
		apierrors.IsRequestEntityTooLargeError(err)
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
