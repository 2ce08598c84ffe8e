package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/controller/watch"
	"akri.sh/akri/templating"
)

// objects brings the objects of one parent to what was rendered for it: the same
// road for a device and for a group.
type objects struct {
	mapper    meta.RESTMapper
	informers *watch.Informers
	client    *apply.Client
	endings   *endings
}

// parent is the Configuration or Instance that the objects belong to.
type parent struct {
	watch.Parent
	uid  types.UID
	kind schema.GroupVersionKind
}

// outcome is what came of it.
type outcome struct {
	// resources is the new inventory.
	resources []v0.ResourceStatus
	// problems, in the order of the templates.
	problems []problem.Problem
	// pending: the watch of some kind is still starting, or an object changed
	// under our hands. There is nothing to report yet; another pass is to come.
	pending bool
	// again is when to look at the parent again without news; 0 is never.
	again time.Duration
}

// bring makes the parent's objects be as rendered. What could not be rendered is
// in diagnostics; its objects are left as they are.
func (o *objects) bring(ctx context.Context, parent parent, compiled *templates.Templates, rendered []templating.Object, diagnostics templating.Diagnostics, recorded []v0.ResourceStatus) outcome {
	result := outcome{problems: compiled.Diagnosed(level(parent), v0.ReasonRenderFailed, diagnostics)}
	desired, resources := o.resolve(parent, compiled, rendered, &result)
	for _, kind := range inventory.Kinds(recorded) {
		if mapping, err := o.mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			resources[kind.GroupKind()] = mapping.Resource
		}
	}
	observed := o.observe(parent, desired, resources)
	ended := slices.ContainsFunc(desired, func(want plan.Desired) bool {
		pod := observed[want.Ref]
		return pod.Ended && !pod.Terminating && !want.Once
	})
	if ended {
		result.again = o.endings.wait(parent.uid, time.Now())
	}
	steps := plan.Compute(plan.Input{
		Parent:       parent.uid,
		Desired:      desired,
		Observed:     observed,
		Recorded:     recorded,
		Complete:     len(result.problems) == 0 && !result.pending,
		ReplaceEnded: ended && result.again == 0,
	})
	if ended && result.again == 0 {
		o.endings.replaced(parent.uid, time.Now())
	}
	o.execute(ctx, parent, compiled, steps, resources, recorded, &result)
	inventory.Sort(result.resources)
	return result
}

// resolve finds the resource of each object, confines it, completes it and makes
// sure that it is watched.
func (o *objects) resolve(parent parent, compiled *templates.Templates, rendered []templating.Object, result *outcome) ([]plan.Desired, map[schema.GroupKind]schema.GroupVersionResource) {
	desired := make([]plan.Desired, 0, len(rendered))
	resources := map[schema.GroupKind]schema.GroupVersionResource{}
	origins := map[inventory.Ref]string{}
	for _, object := range rendered {
		origin := compiled.Place(level(parent), object.Origin.String())
		fail := func(err error) { result.problems = append(result.problems, problem.Of(origin, err)) }
		kind := (&unstructured.Unstructured{Object: object.Content}).GroupVersionKind()
		mapping, err := o.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			fail(apply.KindUnavailable(kind, err))
			continue
		}
		if err != nil {
			fail(fmt.Errorf("ask the API server for %s: %w", kind, err))
			continue
		}
		if err := confine.Object(object.Content, mapping.Scope.Name() == meta.RESTScopeNameNamespace, parent.Namespace); err != nil {
			fail(err)
			continue
		}
		want, err := complete(parent, kind, object)
		if err != nil {
			fail(err)
			continue
		}
		if first, twice := origins[want.Ref]; twice {
			fail(&apply.Error{Reason: v0.ReasonConflict, Cause: fmt.Sprintf("%s is also rendered by %s: give one of them another metadata.name", want.Ref, first)})
			continue
		}
		origins[want.Ref] = origin
		state := o.informers.Ask(mapping.Resource, parent.Parent, object.Directives.ReadyWhen)
		if !state.Synced {
			if state.Err == nil {
				result.pending = true
			} else {
				fail(apply.Watch(kind, mapping.Resource, state.Err))
			}
			continue
		}
		resources[kind.GroupKind()] = mapping.Resource
		desired = append(desired, want)
	}
	return desired, resources
}

// complete adds namespace and owner to a rendered object, and its digest.
func complete(parent parent, kind schema.GroupVersionKind, object templating.Object) (plan.Desired, error) {
	full := &unstructured.Unstructured{Object: object.Content}
	full.SetNamespace(parent.Namespace)
	orphan := object.Directives.DeletionPolicy == templating.DeletionOrphan
	if !orphan {
		full.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: parent.kind.GroupVersion().String(),
			Kind:       parent.kind.Kind,
			Name:       parent.Name,
			UID:        parent.uid,
			Controller: new(true),
		}})
	}
	canonical, err := json.Marshal(full.Object) // map keys come out sorted
	if err != nil {
		return plan.Desired{}, fmt.Errorf("write as JSON: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return plan.Desired{
		Ref:      inventory.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: full.GetNamespace(), Name: full.GetName()},
		Version:  kind.Version,
		Template: int32(object.Origin.Index),
		Intent:   hex.EncodeToString(sum[:8]),
		Content:  full.Object,
		Recreate: object.Directives.OnImmutable == templating.ImmutableRecreate,

		Once:       object.Directives.Once,
		Orphan:     orphan,
		ReadyWhen:  object.Directives.ReadyWhen,
		OnConflict: object.Directives.OnConflict,
	}, nil
}

// observe reads from the watches what planning needs.
func (o *objects) observe(parent parent, desired []plan.Desired, resources map[schema.GroupKind]schema.GroupVersionResource) map[inventory.Ref]plan.Observed {
	observed := map[inventory.Ref]plan.Observed{}
	for kind, resource := range resources {
		for _, object := range o.informers.Of(resource, parent.Parent) {
			observed[inventory.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: object.Namespace, Name: object.Name}] = seen(object)
		}
	}
	for _, want := range desired {
		resource := resources[schema.GroupKind{Group: want.Ref.Group, Kind: want.Ref.Kind}]
		if object, found := o.informers.Get(resource, types.NamespacedName{Namespace: want.Ref.Namespace, Name: want.Ref.Name}); found {
			observed[want.Ref] = seen(object)
		}
	}
	return observed
}

func seen(object *watch.Object) plan.Observed {
	return plan.Observed{
		UID:         object.UID,
		Owner:       object.Owner,
		Terminating: object.DeletionTimestamp != nil,
		Fields:      object.Fields,
		Ended:       object.Ended,
		Reason:      object.Reason,
	}
}

// execute carries the steps out and writes the new inventory into the result.
func (o *objects) execute(ctx context.Context, parent parent, compiled *templates.Templates, steps []plan.Step, resources map[schema.GroupKind]schema.GroupVersionResource, recorded []v0.ResourceStatus, result *outcome) {
	remaining := inventory.Index(recorded)
	for _, step := range steps {
		entry, known := remaining[step.Ref]
		if step.Action == plan.Release {
			log.FromContext(ctx).Info("Released", "child", step.Ref.String(), "reason", step.Reason)
			delete(remaining, step.Ref)
			continue
		}
		if step.Action == plan.Delete {
			if len(result.problems) > 0 || result.pending {
				continue // an apply has failed: what would be deleted may still be needed
			}
			if err := o.delete(ctx, step, resources); err != nil {
				result.problems = append(result.problems, problem.Of(step.Ref.String(), err))
				continue
			}
			log.FromContext(ctx).Info("Deleted", "child", step.Ref.String(), "reason", step.Reason)
			delete(remaining, step.Ref)
			continue
		}
		delete(remaining, step.Ref)
		origin := compiled.Name(level(parent), int(step.Desired.Template))
		now, err := o.apply(ctx, parent, step, resources[step.Kind.GroupKind()], entry)
		switch {
		case errors.Is(err, apply.ErrChanged):
			result.pending, result.again = true, firstRetry
		case err != nil:
			found := problem.Of(origin, err)
			result.problems = append(result.problems, found)
			now.Reason = found.Reason
			if known {
				now.UID, now.Intent, now.Fields = entry.UID, entry.Intent, entry.Fields
			}
		}
		result.resources = append(result.resources, now)
	}
	for entry := range maps.Values(remaining) { // neither wanted nor deleted: kept, so that it can be found again
		if entry.UID != "" {
			result.resources = append(result.resources, entry)
		}
	}
}

// apply carries out a step for a desired object and returns its entry.
func (o *objects) apply(ctx context.Context, parent parent, step plan.Step, resource schema.GroupVersionResource, recorded v0.ResourceStatus) (v0.ResourceStatus, error) {
	want := step.Desired
	entry := v0.ResourceStatus{
		Group: step.Ref.Group, Version: want.Version, Kind: step.Ref.Kind,
		Namespace: step.Ref.Namespace, Name: step.Ref.Name, Template: want.Template, Orphan: want.Orphan,
	}
	var answer *unstructured.Unstructured
	var err error
	switch step.Action {
	case plan.Keep, plan.Wait:
		object, exists := o.informers.Get(resource, types.NamespacedName{Namespace: step.Ref.Namespace, Name: step.Ref.Name})
		entry.UID, entry.Intent, entry.Fields = recorded.UID, recorded.Intent, recorded.Fields
		entry.Ready = true // made once, and gone by itself
		if exists {
			entry.Ready, entry.Reason = object.ReadyBy(want.ReadyWhen)
			if entry.Ready && object.Ended && !want.Once {
				entry.Ready, entry.Reason = false, "the Pod has come to its end and is to be replaced"
			}
		}
		return entry, nil
	case plan.Skip:
		return skipped(entry), nil
	case plan.Recreate:
		return o.recreate(ctx, step, resource, entry, step.Reason)
	case plan.Conflict:
		return entry, apply.Conflict(step.Ref.String())
	case plan.Create:
		owner := apply.Owner{Parent: parent.uid, Applied: types.UID(recorded.UID), Nobody: want.Orphan, Anybody: want.OnConflict == templating.ConflictTake}
		answer, err = o.client.Create(ctx, step.Kind, resource, owner, want.Content)
		if want.OnConflict == templating.ConflictSkip && conflicts(err) {
			return skipped(entry), nil
		}
	case plan.Update:
		answer, err = o.client.Update(ctx, step.Kind, resource, step.UID, want.Content)
		if want.Recreate && immutable(err) {
			return o.recreate(ctx, step, resource, entry, "the template changes a field that is immutable")
		}
	}
	if err != nil {
		return entry, err
	}
	log.FromContext(ctx).Info("Applied", "child", step.Ref.String(), "action", step.Action.String(), "reason", step.Reason)
	object := o.informers.Trim(resource, answer)
	o.informers.Note(resource, object)
	entry.UID, entry.Intent, entry.Fields = string(object.UID), want.Intent, object.Fields
	entry.Ready, entry.Reason = object.ReadyBy(want.ReadyWhen)
	return entry, nil
}

// recreate deletes an object that cannot become what is wanted. Its deletion is
// seen by the watch, and the next pass makes the new one.
func (o *objects) recreate(ctx context.Context, step plan.Step, resource schema.GroupVersionResource, entry v0.ResourceStatus, reason string) (v0.ResourceStatus, error) {
	if err := o.client.Delete(ctx, resource, types.NamespacedName{Namespace: step.Ref.Namespace, Name: step.Ref.Name}, step.UID); err != nil {
		return entry, err
	}
	log.FromContext(ctx).Info("Deleted", "child", step.Ref.String(), "reason", "it is made anew: "+reason)
	entry.UID, entry.Reason = string(step.UID), "being replaced"
	return entry, nil
}

func (o *objects) delete(ctx context.Context, step plan.Step, resources map[schema.GroupKind]schema.GroupVersionResource) error {
	resource, served := resources[step.Kind.GroupKind()]
	if !served {
		return nil // the kind has gone, and its objects with it
	}
	return o.client.Delete(ctx, resource, types.NamespacedName{Namespace: step.Ref.Namespace, Name: step.Ref.Name}, step.UID)
}

func level(parent parent) templating.Level {
	if parent.Instance {
		return templating.InstanceLevel
	}
	return templating.ConfigurationLevel
}

// skipped is the entry of an object that is somebody else's, which is well.
func skipped(entry v0.ResourceStatus) v0.ResourceStatus {
	entry.Ready, entry.Reason = true, "left to its owner"
	return entry
}

func immutable(err error) bool {
	answer, ok := errors.AsType[*apply.Error](err)
	return ok && answer.Reason == v0.ReasonImmutable
}

func conflicts(err error) bool {
	answer, ok := errors.AsType[*apply.Error](err)
	return ok && answer.Reason == v0.ReasonConflict
}
