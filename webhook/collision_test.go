package webhook

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/advice"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
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

// simulateName simulates a Configuration with one template of that metadata.name.
func simulateName(t *testing.T, name string) (*simulation, *candidate) {
	t.Helper()
	configuration := configurationNamed(name)
	compiled, findings := checkTemplates(configuration, confine.Policy{})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	s := simulate(t.Context(), configuration, compiled, newDeviceFactory(configuration, compiled, nil),
		func(templating.Object, templating.Values) (m advice.Member, none []Finding) { return m, nil }, func() bool { return true })
	return s, &candidate{level: templating.InstanceLevel, place: "spec.instanceBrokerResources[0]"}
}

// No template renders two different objects for one device today. The check guards
// against future functions.
func TestUnstable(t *testing.T) {
	s, tmpl := simulateName(t, "{{ INSTANCE_NAME }}")
	if _, findings := s.evaluate(tmpl); len(findings) > 0 {
		t.Fatal(findings)
	}
	s.repeated.first.objects[0].digest = digestOf(map[string]any{"now": "12:01"})
	_, findings := s.evaluate(tmpl)
	if len(findings) != 1 || findings[0].Level != Deny || findings[0].Path != "spec.instanceBrokerResources[0]" {
		t.Errorf("findings are %v", findings)
	}
}

// Names of objects that would collide have properties of a device that exists.
func TestCollisionsQuoteNoDevice(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	expect(t, admin.apply(configuration("", "")), "")
	w.device("cam", "cam-1", "{PASSWORD: hunter2}")
	named := func(name string) string { return `{apiVersion: v1, kind: ConfigMap, metadata: {name: "` + name + `"}}` }
	err := admin.apply(configuration(named("c-{{ INSTANCE_PROPERTIES.PASSWORD | trunc 7 }}"),
		named("c-{{ (index INSTANCES 0).properties.PASSWORD | trunc 7 }}")))
	expect(t, err, "two devices on one node get the same name")
	expect(t, err, "is also the name of an object of")
	if err != nil && strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the property is quoted: %v", err)
	}
	err = admin.apply(configuration(named("settings"), ""))
	expect(t, err, `the same name "settings"`) // the author's own text
}

// A template is valid if it is valid for one of the guesses.
func TestGuesses(t *testing.T) {
	for name, want := range map[string]int{
		"{{ INSTANCE_NAME }}":                                     1, // nothing to guess
		"c-{{ INSTANCE_PROPERTIES.K }}":                           3,
		"c-{{ add 1 (INSTANCE_PROPERTIES.K | int) }}":             2, // not the text
		"c-{{ index (splitList \"-\" INSTANCE_PROPERTIES.K) 1 }}": 1, // only the text
	} {
		s, tmpl := simulateName(t, name)
		alternatives, findings := s.evaluate(tmpl)
		if len(findings) > 0 {
			t.Errorf("%s: %v", name, findings)
		}
		if len(alternatives) != want {
			t.Errorf("%s has %d alternatives, want %d", name, len(alternatives), want)
		}
	}
}

// Without time to complete a round, a template that fails is denied for its own
// reason. If none fails, the time is the reason.
func TestNoTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, want := range map[string]string{
		"{{ INSTANCE_NAME }}":  "the templates take too long to render",
		`c-{{ fail "never" }}`: "metadata.name",
	} {
		configuration := configurationNamed(name)
		compiled, findings := checkTemplates(configuration, confine.Policy{})
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		findings = rendering(ctx, configuration, compiled)
		if len(findings) != 1 || findings[0].Level != Deny || !strings.Contains(findings[0].Error(), want) {
			t.Errorf("%s: findings are %v, want one with %q", name, findings, want)
		}
	}
}

func rendering(ctx context.Context, configuration *v0.Configuration, compiled *templates.Templates) []Finding {
	mapper := meta.NewDefaultRESTMapper(nil)
	chain := &Chain{
		cluster: &cluster{mapper: mapper}, renderings: newSeats(maxRenderingBytes, maxRenderingBytesPerUser),
		processors: newProcessors(),
	}
	candidates := newCandidates(configuration, compiled, mapper)
	devices := newDeviceFactory(configuration, compiled, nil)
	_, findings := chain.checkRendering(ctx, admissionRequest{configuration: configuration}, compiled, candidates, devices)
	return findings
}

// Many warnings take no time from the rendering: each is compared with no others.
func TestManyWarnings(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	const many = 20_000
	configuration := configurationNamed("c")
	configuration.Spec.InstanceBrokerResources = nil
	args := strings.Repeat(`"PLACEHOLDER",`, many-1) + `"PLACEHOLDER"`
	configuration.Spec.BrokerSpec = &v0.BrokerSpec{BrokerPodSpec: &runtime.RawExtension{
		Raw: []byte(`{"containers": [{"name": "a", "image": "a", "args": [` + args + `]}]}`),
	}}
	compiled, findings := checkTemplates(configuration, confine.Policy{})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	findings = rendering(ctx, configuration, compiled)
	if len(findings) != many+1 || denied(findings) { // and that nothing requests a device
		t.Errorf("%d findings, such as %v; want as many warnings as there are texts, and one more", len(findings), findings[0])
	}
}
