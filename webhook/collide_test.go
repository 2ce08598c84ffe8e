package webhook

import (
	"testing"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/templating"
)

// simulateName simulates a Configuration with one template of that metadata.name.
func simulateName(t *testing.T, name string) (*simulation, *candidate) {
	t.Helper()
	template := v0.BrokerResource{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
	}}
	configuration := &v0.Configuration{Spec: v0.ConfigurationSpec{InstanceBrokerResources: []v0.BrokerResource{template}}}
	configuration.Name, configuration.Namespace = "cam", "home"
	compiled, findings := compile(configuration, confine.Policy{})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	s, ok := simulate(t.Context(), configuration, compiled, newDevices(configuration, compiled, nil))
	if !ok {
		t.Fatal("there was no time")
	}
	return s, &candidate{level: templating.InstanceLevel, place: "spec.instanceBrokerResources[0]"}
}

// No template can give two objects for one device today. The check guards against
// future functions.
func TestUnstable(t *testing.T) {
	s, template := simulateName(t, "{{ INSTANCE_NAME }}")
	if _, findings := s.evaluate(template); len(findings) > 0 {
		t.Fatal(findings)
	}
	s.repeated.first.objects[0].Content["data"] = map[string]any{"now": "12:01"}
	_, findings := s.evaluate(template)
	if len(findings) != 1 || findings[0].Level != Deny || findings[0].Place != "spec.instanceBrokerResources[0]" {
		t.Errorf("findings are %v", findings)
	}
}

// A template is valid if it is for some of the guesses.
func TestGuesses(t *testing.T) {
	for name, want := range map[string]int{
		"{{ INSTANCE_NAME }}":                                     1, // nothing to guess
		"c-{{ INSTANCE_PROPERTIES.K }}":                           3,
		"c-{{ add 1 (INSTANCE_PROPERTIES.K | int) }}":             2, // not the text
		"c-{{ index (splitList \"-\" INSTANCE_PROPERTIES.K) 1 }}": 1, // only the text
	} {
		s, template := simulateName(t, name)
		alternatives, findings := s.evaluate(template)
		if len(findings) > 0 {
			t.Errorf("%s: %v", name, findings)
		}
		if len(alternatives) != want {
			t.Errorf("%s has %d alternatives, want %d", name, len(alternatives), want)
		}
	}
}
