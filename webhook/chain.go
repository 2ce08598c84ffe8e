package webhook

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/kinds"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/templates"
)

// Mapper knows the kinds that the API server serves.
type Mapper interface {
	plan.Mapper
	KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error)
}

// Options configure the checks.
type Options struct {
	// Config connects to the API server.
	Config *rest.Config
	// Live reads Configurations and Instances from the API server itself.
	Live client.Reader
	// Mapper maps the kinds that the API server serves.
	Mapper Mapper
	// Policy restricts what templates may render. It must be the controller's.
	Policy confine.Policy
	// RequireUse requires the verb use on discoveryhandlers.akri.sh/NAME of the
	// authors of Configurations for the discovery handler NAME.
	RequireUse bool
	// CrossNamespaceProperties is set if agents read discoveryProperties of other
	// namespaces.
	CrossNamespaceProperties bool
	// Details validate discoveryDetails, by the name of the handler. The details
	// of other handlers are not validated.
	Details map[string]func(discoveryDetails string) error
}

// CacheOptions returns options for the webhook's cache. It has only
// CustomResourceDefinitions, reduced to what the checks need: how many Instances there
// are, and how large they are, is up to others.
func CacheOptions() cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{kinds.CRD(): {Transform: kinds.Trim}}}
}

// Chain reviews Configurations. It is safe for concurrent use.
type Chain struct {
	*cluster
	live    client.Reader
	details map[string]func(discoveryDetails string) error
	// crossNamespace is [Options.CrossNamespaceProperties].
	crossNamespace bool
}

// NewChain returns a Chain.
func NewChain(options Options) (*Chain, error) {
	api, err := newCluster(options)
	if err != nil {
		return nil, err
	}
	return &Chain{
		cluster: api, live: options.Live, details: options.Details, crossNamespace: options.CrossNamespaceProperties,
	}, nil
}

// review performs the checks in order, and returns what they found. A stage that
// denies the request is the last one: further findings would be useless, or must not
// be shown to this requester.
func (c *Chain) review(ctx context.Context, r admissionRequest) []Finding {
	if r.unchanged() {
		return nil
	}

	// 1. The Configuration itself: its name, its details, its templates.
	compiled, delegated, findings := c.inspect(ctx, r)
	if denied(findings) {
		return findings
	}

	// 2. The templates as written, and whether the requester could create the
	// objects. Nothing is rendered for those who may not.
	candidates := newCandidates(r.configuration, compiled, c.mapper)
	findings = slices.Concat(findings, checkReferences(r, c.crossNamespace), c.checkPolicy(r.configuration, candidates),
		c.checkPermissions(ctx, r, candidates, delegated))
	if denied(findings) {
		return findings
	}

	// 3. The rendered objects, and whether the API server accepts them.
	affected, unread := c.listAffected(ctx, r)
	objects := c.newObjectReview(r, compiled, candidates, affected.properties)
	findings = append(findings, unique(slices.Concat(unread, objects.checkObjects(ctx)))...)
	if denied(findings) {
		return findings
	}

	// 4. The effect on existing devices.
	return append(findings, objects.checkForecast(ctx, affected)...)
}

// inspect performs the checks that need neither devices nor dry runs. It returns
// the compiled templates and whether the requester may delegate.
func (c *Chain) inspect(ctx context.Context, r admissionRequest) (compiled *templates.Templates, delegated bool, findings []Finding) {
	var name, number, delegation, problems []Finding
	checks := []func(){
		func() { name = c.checkName(ctx, r) },
		func() { number = c.checkNumber(ctx, r) },
		func() { delegated, delegation = c.mayDelegate(ctx, r) },
		func() { compiled, problems = checkTemplates(r.configuration, c.policy) },
	}
	inParallel(len(checks), func(i int) { checks[i]() })
	return compiled, delegated, slices.Concat(name, number, delegation, checkDetails(c.details, r.configuration), problems)
}

// denied reports whether a finding rejects the request.
func denied(findings []Finding) bool { return slices.ContainsFunc(findings, Finding.denies) }
