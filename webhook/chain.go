package webhook

import (
	"context"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/templates"
)

// Options are what the checks need.
type Options struct {
	// Config reaches the API server as the controller does.
	Config *rest.Config
	// Live reads Configurations from the API server itself.
	Live client.Reader
	// Instances reads Instances; a cache will do.
	Instances client.Reader
	// Mapper knows the kinds that the API server serves.
	Mapper meta.RESTMapper
	// Policy is what may be rendered at all: the controller's own.
	Policy confine.Policy
	// Details check discoveryDetails, by the name of the handler. Handlers that
	// are not among them are not checked.
	Details map[string]func(discoveryDetails string) error
}

// Chain is the checks in their order. It is safe for concurrent use.
type Chain struct {
	checks []check
}

// check looks at one side of a Configuration.
type check struct {
	name string
	look func(context.Context, *review) []Finding
	// apart: it needs nothing of the others and starts before them all. The next
	// gate waits for it.
	apart bool
	// gate ends the chain if anything is denied so far: what follows would be of
	// no use, or is not for this requester to hear.
	gate bool
}

// NewChain returns the checks.
func NewChain(options Options) (*Chain, error) {
	api, err := newCluster(options)
	if err != nil {
		return nil, err
	}
	return &Chain{checks: []check{
		{name: "names", look: names{options.Live}.look, apart: true},
		{name: "delegate", look: delegation{api}.look, apart: true},
		{name: "details", look: detailsCheck(options.Details).look},
		{name: "compile", look: compiler{options.Policy}.look, gate: true},
		{name: "collide", look: collider{options.Instances, options.Mapper, options.Policy}.look},
		{name: "authorize", look: authorizer{api}.look, gate: true},
		{name: "dry run", look: dryRunner{api}.look, gate: true},
		{name: "fleet", look: fleet{api, options.Policy}.look},
	}}, nil
}

// review is one request, and what the checks have learnt for those after them.
type review struct {
	user          authenticationv1.UserInfo
	configuration *v0.Configuration
	old           *v0.Configuration // nil on create

	delegated bool                 // by delegate
	compiled  *templates.Templates // by compile
	instances []v0.Instance        // by collide: those that exist, at most mostInstances
	total     int                  // by collide: how many exist
	trials    []*trial             // by collide: one for each template
}

// judge runs the checks.
func (c *Chain) judge(ctx context.Context, r *review) []Finding {
	if r.old != nil && unchanged(r.old, r.configuration) {
		return nil
	}
	answers := make([][]Finding, len(c.checks))
	apart := newCrew()
	for i, check := range c.checks {
		if check.apart {
			apart.run(func() { answers[i] = check.look(ctx, r) })
		}
	}
	for i, check := range c.checks {
		if !check.apart {
			answers[i] = check.look(ctx, r)
		}
		if !check.gate {
			continue
		}
		apart.wait()
		if slices.ContainsFunc(slices.Concat(answers...), Finding.denies) {
			break
		}
	}
	apart.wait()
	return slices.Concat(answers...)
}

// unchanged: nothing that the checks look at is new. What was stored while they
// were away stays; deleting must be possible in any case.
func unchanged(old, now *v0.Configuration) bool {
	return now.DeletionTimestamp != nil || equality.Semantic.DeepEqual(old.Spec, now.Spec)
}
