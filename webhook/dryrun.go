package webhook

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/templating"
)

// nobody is the UID of an Instance that does not exist. Owner references are sent
// as the controller would send them; nothing looks the owner up.
const nobody types.UID = "00000000-0000-4000-8000-000000000000"

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
		want, err := plan.NewDesired(parentOf(r, t), copied(object), t.resource)
		if err != nil {
			return []Finding{{Level: Deny, Place: t.place, Cause: err.Error()}}
		}
		_, err = client.Create(ctx, &want, claimOf(r, want))
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
func parentOf(r *review, t *trial) ownership.Parent {
	parent := ownership.ConfigurationParent(r.configuration)
	if t.level == templating.InstanceLevel {
		parent.Level, parent.UID = templating.InstanceLevel, nobody
		parent.Name = v0.InstanceName(r.configuration.Name, "stand-in-0", "node-a", false)
	}
	return parent
}

// claimOf claims what the Configuration itself owns already. Another owner's
// object is not touched, not even by a dry run that would adopt it, since the API
// server's answer would then be about fields that are not the requester's.
func claimOf(r *review, want plan.Desired) ownership.Claim {
	claim := ownership.Claim{Parent: ownership.ConfigurationParent(r.configuration)}
	if want.Orphan {
		claim.Adopt = ownership.AdoptApplied
	}
	return claim
}

func copied(object templating.Object) templating.Object {
	object.Content = runtime.DeepCopyJSON(object.Content)
	return object
}

func kindOf(content map[string]any) schema.GroupVersionKind {
	return (&unstructured.Unstructured{Object: content}).GroupVersionKind()
}
