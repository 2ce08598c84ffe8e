package webhook

import (
	"testing"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/templating"
)

// onStage compiles one template and renders it for stand-ins.
func onStage(t *testing.T, name string) (*stage, *trial) {
	t.Helper()
	template := v0.BrokerResource{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
	}}
	r := &review{configuration: &v0.Configuration{Spec: v0.ConfigurationSpec{InstanceBrokerResources: []v0.BrokerResource{template}}}}
	r.configuration.Name, r.configuration.Namespace = "cam", "home"
	if findings := (compiler{confine.Policy{}}).look(t.Context(), r); len(findings) > 0 {
		t.Fatal(findings)
	}
	s := &stage{review: r, devices: devicesOf(r)}
	if !s.render(t.Context()) {
		t.Fatal("there was no time")
	}
	return s, &trial{level: templating.InstanceLevel, place: "spec.instanceBrokerResources[0]"}
}

// No template of today can give two objects for one device; the check is for those
// of tomorrow.
func TestUnstable(t *testing.T) {
	s, template := onStage(t, "{{ INSTANCE_NAME }}")
	if found := s.judge(template); len(found) > 0 {
		t.Fatal(found)
	}
	s.scenes[0].again[0].objects[0].Content["data"] = map[string]any{"now": "12:01"}
	template.objects = nil
	found := s.judge(template)
	if len(found) != 1 || found[0].Level != Deny || found[0].Place != "spec.instanceBrokerResources[0]" {
		t.Errorf("found %v", found)
	}
}

// A guess is as good as another: what only some of them break is in order.
func TestGuesses(t *testing.T) {
	for name, alternatives := range map[string]int{
		"{{ INSTANCE_NAME }}":                                     1, // nothing to guess
		"c-{{ INSTANCE_PROPERTIES.K }}":                           3,
		"c-{{ add 1 (INSTANCE_PROPERTIES.K | int) }}":             2, // not the text
		"c-{{ index (splitList \"-\" INSTANCE_PROPERTIES.K) 1 }}": 1, // only the text
	} {
		s, template := onStage(t, name)
		if found := s.judge(template); len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
		if len(template.objects) != alternatives {
			t.Errorf("%s has %d alternatives, want %d", name, len(template.objects), alternatives)
		}
	}
}
