package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/discover/streams"
	"akri.sh/akri/agent/instances"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
)

const (
	parallelWrites = 8
	// maxAttempts bounds how often a decision is repeated after a conflict.
	maxAttempts = 5
	// refusedRetryDelay is the delay before a rejected request is retried.
	refusedRetryDelay = time.Minute
)

// Publisher writes the Instances of one node.
type Publisher struct {
	client    dynamic.NamespaceableResourceInterface
	instances *instances.Store
	node      string
	manager   string
	log       *slog.Logger

	mu sync.Mutex
	// differs is the time since which an Instance contradicts its Configuration.
	differs map[types.NamespacedName]time.Time
}

// New returns a publisher for a node that writes as a field manager.
func New(client dynamic.Interface, store *instances.Store, node, manager string, log *slog.Logger) *Publisher {
	return &Publisher{
		client: client.Resource(v0.InstanceResource), instances: store, node: node, manager: manager, log: log,
		differs: map[types.NamespacedName]time.Time{},
	}
}

// Result is the outcome of [Publisher.Publish].
type Result struct {
	// Devices are the devices whose Instances exist.
	Devices []device.Device
	// Next is the time to publish again without an event; zero for never.
	Next time.Time
	// Refused are the API server's reasons for rejecting Instances. A user must
	// resolve them.
	Refused []string
}

// Publish creates, updates and deletes the Instances of a Configuration to match a
// snapshot of its devices. After an error it continues with the other Instances.
func (p *Publisher) Publish(ctx context.Context, configuration *v0.Configuration, snapshot streams.Snapshot) (Result, error) {
	name := types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Name}
	have := p.instances.Of(name)
	here := nodeView{node: p.node, configuration: configuration, now: time.Now()}

	var result Result
	var errs []error
	var mu sync.Mutex // guards result and errs
	claimed := map[string]bool{}
	group := errgroup.Group{}
	group.SetLimit(parallelWrites)
	for _, known := range snapshot.Devices {
		found, instanceName := here.find(known.Device, have)
		claimed[instanceName] = true
		group.Go(func() error {
			instance, until, err := p.ensure(ctx, here, known.Device, found, instanceName)
			mu.Lock()
			defer mu.Unlock()
			if instance != nil {
				result.Devices = append(result.Devices, published(instance, known))
			}
			result.Next = earliest(result.Next, until)
			switch {
			case isRefusal(err):
				result.Refused = append(result.Refused, err.Error())
				result.Next = earliest(result.Next, here.now.Add(refusedRetryDelay))
			case err != nil:
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = group.Wait() // failures are in errs

	for _, instance := range have {
		if claimed[instance.Name] {
			continue
		}
		if !snapshot.Settled {
			if instance.DeletionTimestamp == nil {
				result.Devices = append(result.Devices, adopted(instance))
			}
			continue
		}
		group.Go(func() error {
			if err := p.drop(ctx, here, instance); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = group.Wait() // failures are in errs
	slices.SortFunc(result.Devices, func(a, b device.Device) int { return compareNames(a.Instance, b.Instance) })
	slices.Sort(result.Refused)
	return result, errors.Join(errs...)
}

// Withdraw removes this node from all Instances of a deleted Configuration.
func (p *Publisher) Withdraw(ctx context.Context, configuration types.NamespacedName) error {
	here := nodeView{node: p.node, now: time.Now()}
	var errs []error
	for _, instance := range p.instances.Of(configuration) {
		errs = append(errs, p.drop(ctx, here, instance))
	}
	return errors.Join(errs...)
}

// Complete lists the free slots of the Instances whose author is this node. It runs
// last, because nothing depends on it.
func (p *Publisher) Complete(ctx context.Context, configuration types.NamespacedName) error {
	here := nodeView{node: p.node}
	var errs []error
	var mu sync.Mutex
	group := errgroup.Group{}
	group.SetLimit(parallelWrites)
	for _, instance := range p.instances.Of(configuration) {
		patch := slotPatch(instance)
		if len(patch) == 0 || !here.author(instance) || instance.DeletionTimestamp != nil {
			continue
		}
		group.Go(func() error {
			if err := p.patch(ctx, instance, patch); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = group.Wait() // failures are in errs
	return errors.Join(errs...)
}

// ensure creates or corrects the Instance of a device. It returns the Instance, even
// with an error, or nil if there is none, and the time of the next check.
func (p *Publisher) ensure(
	ctx context.Context, here nodeView, d streams.Device, have *v0.Instance, name string,
) (*v0.Instance, time.Time, error) {
	key := types.NamespacedName{Namespace: here.configuration.Namespace, Name: name}
	for range maxAttempts {
		step := here.present(d, have, key.Name, p.differsSince(key))
		switch step.Action {
		case Keep:
			p.differ(key, time.Time{})
			return have, time.Time{}, nil
		case Wait:
			if !step.Until.IsZero() {
				p.differ(key, step.Until.Add(-AuthorPatience))
			}
			return have, step.Until, nil
		case Delete:
			// The deletion event triggers the creation.
			return nil, time.Time{}, p.delete(ctx, have)
		}
		applied, err := p.apply(ctx, step.Want, step.Force)
		if err == nil {
			p.log.Info("Published the Instance", "instance", key, "device", d.ID, "new", step.Have == nil)
			p.differ(key, time.Time{})
			if extra := removeExtra(applied, step.Want); step.Force && len(extra) > 0 {
				err = p.patch(ctx, applied, extra)
			}
			return applied, time.Time{}, err
		}
		if !apierrors.IsConflict(err) {
			return have, time.Time{}, fmt.Errorf("publish Instance %s of device %q: %w", key, d.ID, err)
		}
		// Another agent changed the Instance first.
		if have, err = p.get(ctx, key); err != nil {
			return step.Have, time.Time{}, err
		}
		if have != nil && !belongsTo(have, d) {
			have, key.Name = nil, v0.LongInstanceName(here.configuration.Name, d.ID, here.node, d.Shared)
		}
	}
	return nil, time.Time{}, fmt.Errorf("publish Instance %s of device %q: it changed %d times; retrying", key, d.ID, maxAttempts)
}

// drop removes this node from an Instance.
func (p *Publisher) drop(ctx context.Context, here nodeView, have *v0.Instance) error {
	key := instances.NameOf(have)
	p.differ(key, time.Time{})
	for range maxAttempts {
		var err error
		switch step := here.absent(have); step.Action {
		case Delete:
			err = p.delete(ctx, have)
		case Leave:
			if _, err = p.apply(ctx, step.Want, false); err == nil {
				p.log.Info("Left the Instance to other nodes", "instance", key)
			}
		default:
			return nil
		}
		if !apierrors.IsConflict(err) {
			if err != nil {
				return fmt.Errorf("remove node %s from Instance %s: %w", here.node, key, err)
			}
			return nil
		}
		uid := have.UID
		if have, err = p.get(ctx, key); err != nil {
			return err
		}
		if have == nil || have.UID != uid {
			return nil
		}
	}
	return fmt.Errorf("remove node %s from Instance %s: it changed %d times; retrying", here.node, key, maxAttempts)
}

// apply applies the Instance and returns the result.
func (p *Publisher) apply(ctx context.Context, want *v0.Instance, force bool) (*v0.Instance, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	answer, err := p.client.Namespace(want.Namespace).Apply(ctx, want.Name, object,
		metav1.ApplyOptions{FieldManager: p.manager, Force: force})
	if err != nil {
		return nil, err
	}
	return p.keep(answer)
}

// patch patches the Instance if it still exists as read.
func (p *Publisher) patch(ctx context.Context, have *v0.Instance, patch jsonpatch.Patch) error {
	// By now, another Instance may have the same name.
	bound := append(jsonpatch.Patch{jsonpatch.Test("/metadata/uid", have.UID)}, patch...)
	answer, err := p.client.Namespace(have.Namespace).Patch(ctx, have.Name, types.JSONPatchType, bound.Encode(),
		metav1.PatchOptions{FieldManager: p.manager})
	switch {
	case apierrors.IsInvalid(err), apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil // it has changed, which triggers another reconciliation
	case err != nil:
		return fmt.Errorf("patch Instance %s: %w", instances.NameOf(have), err)
	}
	_, err = p.keep(answer)
	return err
}

// delete deletes an Instance if it has not changed since it was read. Otherwise it
// returns a conflict.
func (p *Publisher) delete(ctx context.Context, have *v0.Instance) error {
	err := p.client.Namespace(have.Namespace).Delete(ctx, have.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion},
	})
	if err == nil {
		p.log.Info("Deleted the Instance", "instance", instances.NameOf(have))
	}
	if err == nil || apierrors.IsNotFound(err) {
		p.instances.Forget(have)
		return nil
	}
	return err
}

// get returns an Instance from the API server, or nil.
func (p *Publisher) get(ctx context.Context, key types.NamespacedName) (*v0.Instance, error) {
	object, err := p.client.Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Instance %s: %w", key, err)
	}
	return instances.Read(object)
}

// keep records the response to a write, so that later reads see it before the watch
// does.
func (p *Publisher) keep(answer *unstructured.Unstructured) (*v0.Instance, error) {
	instance, err := instances.Read(answer)
	if err != nil {
		return nil, err
	}
	p.instances.Keep(instance)
	return instance, nil
}

func (p *Publisher) differsSince(key types.NamespacedName) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.differs[key]
}

func (p *Publisher) differ(key types.NamespacedName, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if since.IsZero() {
		delete(p.differs, key)
	} else {
		p.differs[key] = since
	}
}

// isRefusal reports whether retrying a rejected Instance is pointless.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsRequestEntityTooLargeError(err)
}
