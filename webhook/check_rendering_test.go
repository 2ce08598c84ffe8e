package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
)

// configurationNamed returns a Configuration with one template of that
// metadata.name.
func configurationNamed(name string) *v0.Configuration {
	resource := v0.BrokerResource{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
	}}
	configuration := &v0.Configuration{Spec: v0.ConfigurationSpec{InstanceBrokerResources: []v0.BrokerResource{resource}}}
	configuration.Name, configuration.Namespace = "cam", "home"
	return configuration
}

// rendering returns a review of a Configuration's templates that has not rendered them yet.
func rendering(t *testing.T, configuration *v0.Configuration) *objectReview {
	t.Helper()
	compiled, findings := checkTemplates(configuration, confine.Policy{})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	return &objectReview{
		Chain: &Chain{cluster: &cluster{mapper: mapper}}, r: admissionRequest{configuration: configuration}, compiled: compiled,
		candidates: newCandidates(configuration, compiled, mapper), devices: newDeviceFactory(configuration, compiled, nil),
		advised: map[string]bool{},
	}
}

// A template is valid if it is valid for one of the guesses. Guesses that make up the same are
// tried once.
func TestGuesses(t *testing.T) {
	for name, want := range map[string][]bool{
		"{{ INSTANCE_NAME }}":                                     {true}, // nothing to guess
		"c-{{ INSTANCE_PROPERTIES.K }}":                           {true, true},
		"c-{{ INSTANCE_PROPERTIES.DEVICE_IP }}":                   {true, true, true},
		"c-{{ add 1 (INSTANCE_PROPERTIES.K | int) }}":             {true, false},
		"c-{{ index (splitList \"-\" INSTANCE_PROPERTIES.K) 1 }}": {false, true},
	} {
		o := rendering(t, configurationNamed(name))
		var valid []bool
		for _, guess := range o.devices.distinctGuesses() {
			object, findings := o.choose(o.render(t.Context(), guess), o.candidates[0])
			valid = append(valid, object != nil && len(findings) == 0)
		}
		if !slices.Equal(valid, want) {
			t.Errorf("%s: valid are %v, want %v", name, valid, want)
		}
	}
}

// Without time to render all lists, a template that fails is denied for its own
// reason. If none fails, the time is the reason.
func TestNoTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, want := range map[string]string{
		"{{ INSTANCE_NAME }}":  "the templates take too long to render",
		`c-{{ fail "never" }}`: "metadata.name",
	} {
		o := rendering(t, configurationNamed(name))
		findings := o.tooSlow(o.render(ctx, guesses[0]))
		if len(findings) != 1 || findings[0].Level != Deny || !strings.Contains(findings[0].Error(), want) {
			t.Errorf("%s: findings are %v, want one with %q", name, findings, want)
		}
	}
	before := rendering(t, configurationNamed("{{ INSTANCE_NAME }}")).checkObjects(ctx)
	if len(before) != 1 || before[0].Level != Inconclusive {
		t.Errorf("findings are %v if the time is up before, want one that is inconclusive", before)
	}
}

// Objects that are too large to be held until their dry runs are not denied, but the author
// is told.
func TestMoreThanIsHeld(t *testing.T) {
	w := newWorld(t)
	w.guard()
	list := make([]string, 64)
	for i := range list {
		list[i] = fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}-%d"}, `+
			`data: {k: "{{ repeat 200000 \"x\" }}"}}`, i)
	}
	admin := w.as("")
	expect(t, admin.apply(configuration(strings.Join(list, ","), "")), "")
	if warnings := admin.warnings.take(); !strings.Contains(warnings, "spec.instanceBrokerResources[63]: the objects of one device") &&
		!strings.Contains(warnings, "more warnings") {
		t.Errorf("warned: %q", warnings)
	}
}
