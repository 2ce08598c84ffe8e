package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/templating"
)

// mostInstances is for how many Instances an update is tried.
const mostInstances = 20

// collider renders the templates for stand-in devices. It refuses what may not be
// rendered at all, what fails for every guess at a device, what changes from one
// rendering to the next, and objects that two devices or two templates would
// both claim.
type collider struct {
	instances client.Reader
	mapper    meta.RESTMapper
	policy    confine.Policy
}

func (c collider) look(ctx context.Context, r *review) []Finding {
	var findings []Finding
	if r.old != nil {
		if err := c.read(ctx, r); err != nil {
			findings = append(findings, Finding{Level: Inconclusive, Place: "spec", Cause: fmt.Sprintf("the Instances cannot be read: %v", err)})
		}
	}
	r.trials = trialsOf(r, c.mapper)
	for _, t := range r.trials {
		findings = append(findings, c.confined(r, t, t.written)...)
	}
	stage := stage{review: r, devices: devicesOf(r)}
	if !stage.render(ctx) {
		return append(findings, Finding{Level: Deny, Place: "spec", Cause: "the templates take too long to render, even for one device", Remedy: "use fewer or shorter loops"})
	}
	for _, t := range r.trials {
		if found := stage.judge(t); len(found) > 0 {
			findings = append(findings, found...)
			continue
		}
		for _, object := range t.objects[:min(1, len(t.objects))] {
			findings = append(findings, c.confined(r, t, object.Content)...)
		}
	}
	return unique(findings)
}

// read lists the Instances of the Configuration.
func (c collider) read(ctx context.Context, r *review) error {
	var list v0.InstanceList
	if err := c.instances.List(ctx, &list, client.InNamespace(r.configuration.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		if instance := list.Items[i]; instance.Spec.ConfigurationName == r.configuration.Name && instance.DeletionTimestamp == nil {
			if r.total++; len(r.instances) < mostInstances {
				r.instances = append(r.instances, instance)
			}
		}
	}
	return nil
}

// confined asks what may be rendered at all, of a template or of what came of it.
func (c collider) confined(r *review, t *trial, content map[string]any) []Finding {
	if content == nil {
		return nil
	}
	err := c.policy.Object(confine.ObjectOf(t.kind, t.namespaced(), content), r.configuration.Namespace)
	refused, ok := errors.AsType[*problem.Error](err)
	if !ok {
		return nil
	}
	return []Finding{{Level: Deny, Place: t.place, Cause: refused.Cause, Remedy: refused.Hint}}
}

// stage is where templates are rendered for stand-ins.
type stage struct {
	*review
	devices devices
	scenes  []scene
}

// scene is one guess at what devices are like.
type scene struct {
	first, second, shared played // at instance level
	group                 played // at configuration level
	again                 []played
}

// played is what came of rendering a list of templates.
type played struct {
	objects     []templating.Object
	diagnostics templating.Diagnostics
}

// render renders everything that the checks compare. It reports false if there was
// no time to: rendering itself is bounded, but not to what an admission may take.
func (s *stage) render(ctx context.Context) bool {
	for i, invent := range guesses {
		if i > 0 && (len(s.devices.guessed) == 0 || ctx.Err() != nil) {
			break // nothing to guess, or no time to
		}
		first, second := s.devices.device(0, invent, false), s.devices.device(1, invent, false)
		group := s.values()
		group.Instances = []templating.Instance{first, second}
		now := scene{first: s.play(templating.InstanceLevel, s.of(first))}
		if ctx.Err() != nil {
			break
		}
		now.second = s.play(templating.InstanceLevel, s.of(second))
		now.shared = s.play(templating.InstanceLevel, s.of(s.devices.device(0, invent, true)))
		now.group = s.play(templating.ConfigurationLevel, group)
		if i == 0 {
			now.again = []played{s.play(templating.InstanceLevel, s.of(first)), s.play(templating.ConfigurationLevel, group)}
		}
		s.scenes = append(s.scenes, now)
	}
	return len(s.scenes) > 0
}

func (s *stage) values() templating.Values {
	return templating.Values{
		Configuration: s.configuration.Name,
		Namespace:     s.configuration.Namespace,
		Capacity:      int64(max(s.configuration.Spec.Capacity, 1)),
	}
}

func (s *stage) of(instance templating.Instance) templating.Values {
	values := s.values()
	values.Instance = instance
	return values
}

func (s *stage) play(level templating.Level, values templating.Values) played {
	set := s.compiled.Instance
	if level == templating.ConfigurationLevel {
		set = s.compiled.Group
	}
	objects, diagnostics := set.Render(values)
	return played{objects, diagnostics}
}

// judge fills a template's alternatives, or says what is wrong with it.
func (s *stage) judge(t *trial) []Finding {
	var failure templating.Diagnostics
	collisions, well := 0, 0
	var rival string
	for _, scene := range s.scenes {
		of := scene.first
		if t.level == templating.ConfigurationLevel {
			of = scene.group
		}
		if diagnostics := of.diagnostics.Of(t.level, t.index); len(diagnostics) > 0 {
			if failure == nil {
				failure = diagnostics
			}
			continue
		}
		well++
		made := of.made(t)
		if other, found := scene.rival(t, made); found {
			collisions, rival = collisions+1, other
		}
		if len(made) == 0 && t.level == templating.InstanceLevel {
			made = append(scene.shared.made(t), scene.second.made(t)...) // its condition wants another device
		}
		t.objects = append(t.objects, made[:min(1, len(made))]...)
	}
	switch {
	case well == 0:
		return s.failed(t, failure)
	case collisions == well:
		return []Finding{{Level: Deny, Place: t.field("metadata.name"), Cause: rival, Remedy: "let the names differ"}}
	case s.unstable(t):
		return []Finding{{Level: Deny, Place: t.place, Cause: "the same device gives another object each time it is rendered", Remedy: "please report this: no template should be able to"}}
	}
	return nil
}

// failed tells what no guess could render.
func (s *stage) failed(t *trial, diagnostics templating.Diagnostics) []Finding {
	var findings []Finding
	for i, problem := range s.compiled.Diagnosed(t.level, v0.ReasonRenderFailed, diagnostics) {
		finding := Finding{Level: Deny, Cause: inSpec(problem.Message)}
		_, tooMuch := errors.AsType[*templating.LimitError](diagnostics[i].Cause)
		if s.guesses(t) && !tooMuch {
			finding.Remedy = sampleHint
		}
		findings = append(findings, finding)
	}
	return findings
}

// guesses tells whether a template reads properties that had to be made up.
func (s *stage) guesses(t *trial) bool {
	return len(s.devices.guessed) > 0 && readsProperties(t.written)
}

// made are the objects of a template.
func (p played) made(t *trial) []templating.Object {
	var made []templating.Object
	for _, object := range p.objects {
		if object.Origin.Level == t.level && object.Origin.Index == t.index {
			made = append(made, object)
		}
	}
	return made
}

// rival says who else would claim one of a template's objects: another device, or
// a template of the other list. (Two templates of one list are a failure to
// render.)
func (s scene) rival(t *trial, made []templating.Object) (string, bool) {
	others := s.second.made(t)
	if t.level == templating.ConfigurationLevel {
		others = s.first.objects
	}
	for _, object := range made {
		if object.Directives.OnConflict == templating.ConflictSkip {
			continue // the author wants it to be shared
		}
		for _, other := range others {
			if identity(object) != identity(other) {
				continue
			}
			name := identity(object).name
			if t.level == templating.ConfigurationLevel {
				return fmt.Sprintf("%q is also what %s gives", name, other.Origin), true
			}
			return fmt.Sprintf("two devices on one node get the same name %q, and with it the same object: build it from INSTANCE_NAME", name), true
		}
	}
	return "", false
}

type objectIdentity struct{ group, kind, namespace, name string }

func identity(object templating.Object) objectIdentity {
	kind := kindOf(object.Content)
	metadata, _ := object.Content["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	return objectIdentity{kind.Group, kind.Kind, namespace, name}
}

// unstable: the second rendering for one and the same device differs from the
// first.
func (s *stage) unstable(t *trial) bool {
	once, twice := s.scenes[0].first, s.scenes[0].again[0]
	if t.level == templating.ConfigurationLevel {
		once, twice = s.scenes[0].group, s.scenes[0].again[1]
	}
	return !slices.EqualFunc(once.made(t), twice.made(t), func(a, b templating.Object) bool {
		return string(written(a)) == string(written(b))
	})
}

// written is an object's content as bytes.
func written(object templating.Object) []byte {
	text, err := json.Marshal(object.Content) // map keys come out sorted
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// unique drops repetitions.
func unique(findings []Finding) []Finding {
	seen := map[Finding]bool{}
	kept := findings[:0]
	for _, finding := range findings {
		if !seen[finding] {
			seen[finding] = true
			kept = append(kept, finding)
		}
	}
	return kept
}
