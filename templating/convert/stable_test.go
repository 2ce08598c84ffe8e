package convert_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"akri.sh/akri/templating"
	"akri.sh/akri/templating/convert"
)

// render returns the objects of an Instance: those of old fields, followed by those of
// broker resources.
func render(t *testing.T, old convert.Fields, resources []map[string]any, values templating.Values) []map[string]any {
	t.Helper()
	lists, err := convert.BrokerResources(old)
	if err != nil {
		t.Fatal(err)
	}
	set, diags := templating.Compile(templating.InstanceLevel, append(convert.Templates(lists.Instance), resources...))
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	rendered, diags := set.Render(values)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	objects := make([]map[string]any, len(rendered))
	for i := range rendered {
		objects[i] = rendered[i].Content
	}
	return objects
}

func valuesOf(capacity int64, nodes ...string) templating.Values {
	return templating.Values{
		Configuration: "akri-cam", Namespace: "edge", Capacity: capacity,
		Instance: templating.Instance{Name: "akri-cam-8120fe", Nodes: nodes, Shared: true},
	}
}

func nameOf(object map[string]any) string {
	return object["metadata"].(map[string]any)["name"].(string)
}

func labelsOf(object map[string]any) labels.Set {
	set := labels.Set{}
	for key, text := range object["metadata"].(map[string]any)["labels"].(map[string]any) {
		set[key] = text.(string)
	}
	return set
}

// Nodes that join, whatever their names, do not move a broker. One that leaves is
// replaced by the node that joined next.
func TestBrokersStayOnTheirNodes(t *testing.T) {
	old := convert.Fields{BrokerPodSpec: map[string]any{"containers": []any{map[string]any{"name": "broker"}}}}
	for _, c := range []struct {
		name     string
		capacity int64
		nodes    []string
		want     string
	}{
		{"one node", 2, []string{"m"}, "m"},
		{"two nodes", 2, []string{"m", "z"}, "m z"},
		{"a node with an earlier name joins", 2, []string{"m", "z", "a"}, "m z"},
		{"the first node leaves", 2, []string{"z", "a", "b"}, "a z"},
		{"it returns", 2, []string{"z", "a", "b", "m"}, "a z"},
		{"the capacity shrinks", 1, []string{"z", "a", "b", "m"}, "z"},
		{"a node is listed twice", 2, []string{"z", "z", "a"}, "a z"},
		{"no node", 2, nil, ""},
	} {
		var nodes []string
		for _, pod := range render(t, old, nil, valuesOf(c.capacity, c.nodes...)) {
			node, _, _ := strings.Cut(nameOf(pod), "-")
			nodes = append(nodes, node)
		}
		if got := strings.Join(nodes, " "); got != c.want {
			t.Errorf("%s: brokers on %q, want %q", c.name, got, c.want)
		}
	}
}

// A Job keeps its name, and so does not run again, until its own specification changes.
func TestAJobRunsAgainOnlyIfItChanged(t *testing.T) {
	s := func(image string, limit any) map[string]any {
		return map[string]any{
			"backoffLimit": limit,
			"template":     map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "broker", "image": image}}}},
		}
	}
	name := func(s map[string]any, values templating.Values) string {
		return nameOf(render(t, convert.Fields{BrokerJobSpec: s}, nil, values)[0])
	}
	first := name(s("a", int64(2)), valuesOf(1, "m"))
	if other := name(s("a", int64(2)), valuesOf(3, "m", "a")); other != first {
		t.Errorf("%s is named %s after another field changed", first, other)
	}
	if other := name(s("a", float64(2)), valuesOf(1, "m")); other != first {
		t.Errorf("%s is named %s if it is read by another decoder", first, other)
	}
	names := []string{first, name(s("b", int64(2)), valuesOf(1, "m")), name(s("a", int64(3)), valuesOf(1, "m"))}
	slices.Sort(names)
	if len(slices.Compact(names)) != 3 {
		t.Errorf("Jobs that differ have the same name: %q", names)
	}
}

// A Service selects the Pods of the broker that exists, whichever field it is from.
func TestServicesSelectTheBrokers(t *testing.T) {
	container := []any{map[string]any{"name": "broker"}}
	deployment := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "{{ INSTANCE_NAME }}"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": "{{ LABEL_SELECTOR }}"},
			"template": map[string]any{"spec": map[string]any{"containers": container}},
		},
	}
	for name, c := range map[string]struct {
		old       convert.Fields
		resources []map[string]any
		pod       func(objects []map[string]any) map[string]any
	}{
		"brokerPodSpec": {
			old: convert.Fields{BrokerPodSpec: map[string]any{"containers": container}},
			pod: func(objects []map[string]any) map[string]any { return objects[0] },
		},
		"instanceBrokerResources": {
			resources: []map[string]any{deployment},
			pod: func(objects []map[string]any) map[string]any {
				return objects[len(objects)-1]["spec"].(map[string]any)["template"].(map[string]any)
			},
		},
	} {
		c.old.InstanceServiceSpec = map[string]any{"ports": []any{}}
		c.old.ConfigurationServiceSpec = map[string]any{"ports": []any{}}
		values := valuesOf(1, "m")
		objects := render(t, c.old, c.resources, values)
		pod := labelsOf(c.pod(objects))
		lists, err := convert.BrokerResources(c.old)
		if err != nil {
			t.Fatal(err)
		}
		set, diags := templating.Compile(templating.ConfigurationLevel, convert.Templates(lists.Configuration))
		if err := diags.Err(); err != nil {
			t.Fatal(err)
		}
		group, diags := set.Render(values)
		if err := diags.Err(); err != nil {
			t.Fatal(err)
		}
		services := []map[string]any{group[0].Content}
		for _, object := range objects {
			if object["kind"] == "Service" {
				services = append(services, object)
			}
		}
		for _, service := range services {
			selector := labels.Set{}
			for key, text := range service["spec"].(map[string]any)["selector"].(map[string]any) {
				selector[key] = text.(string)
			}
			if !selector.AsSelector().Matches(pod) {
				t.Errorf("%s: Service %s selects %s, but the broker has %s", name, nameOf(service), selector, pod)
			}
		}
		if len(services) != 2 {
			t.Errorf("%s: %d Services", name, len(services))
		}
	}
}
