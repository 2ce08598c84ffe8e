package view

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

func TestExplain(t *testing.T) {
	var out strings.Builder
	e := Explanation{
		Object: "Deployment.apps plant/cam", Dependent: "Pod plant/cam-x", Configuration: "plant/cam", Generation: 3,
		Instance: "cam-1", Template: "instanceBrokerResources[0]", Element: "node1", State: "ready", Notes: []string{"one\ntwo"},
		Fields: []field{
			{Field: "data.k", Text: "{{ A }}\n{{ B }}", Value: strings.Repeat("x", 200), Inputs: []input{
				{Name: "A", Value: map[string]any{"k": "v"}, Source: "here"}, {Name: "B", Source: "there"},
			}},
			{Field: "data.n", Key: true, Text: "{{ N }}", Value: ""},
			{Field: "data.f", Text: "{{ F }}", Fault: "no such thing"},
		},
		Directives:    []directive{{"akri.sh/once", "true"}},
		OtherManagers: []Manager{{Name: "kubectl-edit", Operation: "Update", Fields: []string{"data.theirs"}, More: 2}},
	}
	if err := e.Text(&out); err != nil {
		t.Fatal(err)
	}
	want := `Pod plant/cam-x is owned by Deployment.apps plant/cam:

Deployment.apps plant/cam
  template   instanceBrokerResources[0] of Configuration plant/cam, generation 3
  for        Instance cam-1
  for each   node1
  state      ready
  note       one
             two

Fields with expressions:
  data.k = ` + strings.Repeat("x", 97) + `…
      {{ A }}
      {{ B }}
      A = {"k":"v"}  (here)
      B is not set  (there)
  key data.n = ""
      {{ N }}
  data.f has no value: no such thing
      {{ F }}

Directives:
  akri.sh/once: true

Fields of other managers:
  kubectl-edit (Update): data.theirs and 2 more
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestSetExpressions checks that the source of each input is known, and Secrets hide
// their values.
func TestSetExpressions(t *testing.T) {
	configuration := &v0.Configuration{Spec: v0.ConfigurationSpec{
		DiscoveryHandler: v0.DiscoveryHandler{Name: "onvif"}, BrokerProperties: map[string]string{"ROOM": "hall"},
	}}
	expressions := []templating.Expression{
		{
			Field: templating.Path{templating.Key("data"), templating.Key("k")}, Text: "{{ … }}", Value: "GEHEIM",
			Reads: []templating.Input{
				{Name: "INSTANCE_PROPERTIES.URL", Property: "URL", Value: "GEHEIM"},
				{Name: "INSTANCE_PROPERTIES.ROOM", Property: "ROOM", Value: "hall"},
				{Name: "INSTANCE_PROPERTIES.NONE", Property: "NONE"},
				{Name: "INSTANCES.x"},
			},
		},
		{Field: templating.Path{templating.Key("metadata"), templating.Key("name")}, Value: "cam", Fault: errors.New("why")},
	}
	fieldsOf := func(kind string) []field {
		var e Explanation
		e.SetExpressions(expressions, configuration, kind)
		return e.Fields
	}
	open, closed := fieldsOf("ConfigMap"), fieldsOf("Secret")
	wantInputs := []input{
		{"INSTANCE_PROPERTIES.URL", "GEHEIM", "property of the device, from onvif"},
		{"INSTANCE_PROPERTIES.ROOM", "hall", "spec.brokerProperties of the Configuration"},
		{"INSTANCE_PROPERTIES.NONE", nil, "property of the device, from onvif"},
		{"INSTANCES.x", nil, "the Instances of the Configuration"},
	}
	if !reflect.DeepEqual(open[0].Inputs, wantInputs) || open[0].Value != "GEHEIM" || open[0].Field != "data.k" {
		t.Errorf("got %+v\nwant inputs %+v", open[0], wantInputs)
	}
	var out strings.Builder
	if err := (&Explanation{Fields: closed}).Text(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "GEHEIM") || strings.Contains(out.String(), "hall") {
		t.Errorf("the output contains values of a Secret:\n%s", out.String())
	}
	if closed[1].Value != "cam" || closed[1].Fault != "why" || closed[0].Inputs[2].Value != nil {
		t.Errorf("outside its data a Secret has nothing to hide, and a missing value stays missing: %+v", closed)
	}
}

// TestSources checks that every variable has a source.
func TestSources(t *testing.T) {
	template := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": map[string]any{
		"all": "{{ CAPACITY }}{{ CONFIGURATION_NAME }}{{ INSTANCE_NAME }}{{ range $k, $v := INSTANCE_PROPERTIES }}{{ end }}{{ LABEL_SELECTOR " +
			"}}{{ NAMESPACE }}{{ NODES }}{{ PLACEHOLDER }}{{ RESOURCE_NAME }}{{ SHARED }}",
	}}
	set, diagnostics := templating.Compile(templating.InstanceLevel, []map[string]any{template})
	if err := diagnostics.Err(); err != nil {
		t.Fatal(err)
	}
	var e Explanation
	e.SetExpressions(set.Explain(templating.Values{}, templating.Origin{}), &v0.Configuration{}, "ConfigMap")
	if len(e.Fields) != 1 || len(e.Fields[0].Inputs) != 10 {
		t.Fatalf("got %+v, want one field with 10 inputs", e.Fields)
	}
	for _, read := range e.Fields[0].Inputs {
		if read.Source == "variable" {
			t.Errorf("%s has no source", read.Name)
		}
	}
}

func TestSetDirectives(t *testing.T) {
	directivesOf := func(d templating.Directives) []directive {
		var e Explanation
		e.SetDirectives(d)
		return e.Directives
	}
	none := templating.Directives{OnConflict: templating.ConflictFail, OnImmutable: templating.ImmutableFail,
		DeletionPolicy: templating.DeletionDelete}
	if got := directivesOf(none); got != nil {
		t.Errorf("got %v for a template without directives", got)
	}
	some := templating.Directives{When: "{{ SHARED }}", ForEach: templating.ForEachNode, OnConflict: templating.ConflictAdopt,
		OnImmutable: templating.ImmutableFail, DeletionPolicy: templating.DeletionOrphan}
	want := []directive{{"akri.sh/when", "{{ SHARED }}"}, {"akri.sh/for-each", "NODES"}, {"akri.sh/on-conflict", "adopt"},
		{"akri.sh/deletion-policy", "orphan"}}
	if diff := cmp.Diff(want, directivesOf(some)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestOtherManagers(t *testing.T) {
	entry := func(manager, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource,
			FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	ours := entry(v0.FieldManagerController, "", `{"f:data":{"f:k":{}}}`)
	ours.Operation = metav1.ManagedFieldsOperationApply
	got := OtherManagers([]metav1.ManagedFieldsEntry{
		ours,
		entry("kubectl-edit", "", `{"f:data":{"f:theirs":{}},"f:spec":{"f:ports":{"k:{\"port\":80}":{".":{},"f:name":{}}}}}`),
		entry("kubelet", "status", `{"f:status":{"f:phase":{}}}`),
		entry("chatty", "", `{"f:a":{},"f:b":{},"f:c":{},"f:d":{},"f:e":{},"f:f":{},"f:g":{}}`),
	})
	want := []Manager{
		{Name: "kubectl-edit", Operation: "Update", Fields: []string{"data.theirs", "spec.ports[port=80].name"}},
		{Name: "kubelet", Operation: "Update", Fields: []string{"status"}},
		{Name: "chatty", Operation: "Update", Fields: []string{"a", "b", "c", "d", "e", "f"}, More: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
