package webhook

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/sample"
)

// dryRunner has the API server try one object of each template, as whoever will
// apply it.
type dryRunner struct {
	*cluster
}

func (d dryRunner) look(ctx context.Context, r *review) []Finding {
	client, err := d.client(r)
	if err != nil {
		return []Finding{{Level: Inconclusive, Place: "spec", Cause: err.Error()}}
	}
	answers := make([][]Finding, len(r.trials))
	crew := newCrew()
	for i, t := range r.trials {
		crew.run(func() { answers[i] = d.try(ctx, client, r, t) })
	}
	crew.wait()
	return unique(slices.Concat(answers...))
}

// try tries the alternatives until the API server takes one. What it says of the
// first is told if it takes none.
func (d dryRunner) try(ctx context.Context, client *apply.Client, r *review, t *trial) []Finding {
	switch {
	case t.err != nil:
		return []Finding{{Level: Inconclusive, Place: t.place, Cause: fmt.Sprintf("the API server cannot tell whether it has kind %q in %q: %v", t.kind.Kind, t.kind.GroupVersion(), t.err)}}
	case t.resource == nil:
		return []Finding{{Level: Inconclusive, Place: t.field("kind"), Cause: t.unknownKind(), Remedy: "correct apiVersion and kind, or install the CustomResourceDefinition that brings it"}}
	}
	var first []Finding
	var before []byte
	for _, object := range t.objects {
		same := written(object)
		if bytes.Equal(before, same) {
			continue
		}
		before = same
		want, err := plan.Want(parentOf(r, t), copied(object), t.namespaced())
		if err != nil {
			return []Finding{{Level: Deny, Place: t.place, Cause: err.Error()}}
		}
		_, err = client.Create(ctx, t.kind, t.resource.Resource, ownerOf(r, want), want.Content)
		said := refusal{review: r, trial: t, content: want.Content}.read(err)
		if len(said) == 0 || !said[0].denies() {
			return said
		}
		if first == nil {
			first = said
		}
	}
	return first
}

// parentOf is whose object it will be.
func parentOf(r *review, t *trial) plan.Parent {
	if t.level == templating.ConfigurationLevel {
		return plan.Parent{Kind: v0.ConfigurationKind, Namespace: r.configuration.Namespace, Name: r.configuration.Name, UID: r.configuration.UID}
	}
	return plan.Parent{Kind: v0.InstanceKind, Namespace: r.configuration.Namespace, Name: sample.InstanceName(r.configuration.Name, 0, false), UID: sample.UID}
}

// ownerOf says which existing object is ours: only what the Configuration itself
// owns already. Nobody else's is touched, not even by a dry run that would take
// it over, since what the API server says then is about their fields.
func ownerOf(r *review, want plan.Desired) apply.Owner {
	return apply.Owner{Parent: r.configuration.UID, Nobody: want.Orphan}
}

func copied(object templating.Object) templating.Object {
	object.Content = runtime.DeepCopyJSON(object.Content)
	return object
}

func kindOf(content map[string]any) schema.GroupVersionKind {
	return (&unstructured.Unstructured{Object: content}).GroupVersionKind()
}
