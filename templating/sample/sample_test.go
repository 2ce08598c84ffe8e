package sample_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"akri.sh/akri/templating"
	"akri.sh/akri/templating/sample"
)

func TestInstances(t *testing.T) {
	o := sample.Options{
		Configuration: "cam", Namespace: "edge", Capacity: 2,
		Properties: map[string]string{"MODEL": "t1"}, Keys: []string{"CAMERA_IP", "camera-port", "MODEL", "OTHER"},
	}
	two := sample.Instances(o, 2)
	if diff := cmp.Diff(two, sample.Instances(o, 2)); diff != "" {
		t.Errorf("the same options give different Instances:\n%s", diff)
	}
	a, b := two[0], two[1]
	if a.Name == b.Name || a.Nodes[0] == b.Nodes[0] || a.Properties["OTHER"] == b.Properties["OTHER"] {
		t.Errorf("two devices cannot be distinguished: %v, %v", a, b)
	}
	want := map[string]string{"CAMERA_IP": "192.0.2.10", "camera-port": "8000", "MODEL": "t1", "OTHER": "sample-0"}
	if diff := cmp.Diff(want, a.Properties); diff != "" {
		t.Errorf("properties: -want +got\n%s", diff)
	}
	o.Shared = true
	if shared := sample.Instances(o, 1)[0]; len(shared.Nodes) != 2 || !shared.Shared {
		t.Errorf("a shared device is seen by %v", shared.Nodes)
	}
}

// TestSamplesRender checks that samples have the properties that templates mention,
// with values that fit.
func TestSamplesRender(t *testing.T) {
	set, diags := templating.Compile(templating.InstanceLevel, []map[string]any{
		{
			"apiVersion": "v1",
			"kind":       "Service",
			"metadata":   map[string]any{"name": "{{ INSTANCE_NAME }}"},
			"spec": map[string]any{
				"port": "{{ INSTANCE_PROPERTIES.HTTP_PORT | int }}",
				"host": "{{ (urlParse INSTANCE_PROPERTIES.STREAM_URL).host }}",
			},
		},
	})
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	o := sample.Options{Configuration: "cam", Namespace: "edge", Capacity: 1, Keys: set.PropertyKeys()}
	for _, instance := range sample.Instances(o, 2) {
		objects, diags := set.Render(sample.Values(o, instance))
		if err := diags.Err(); err != nil || len(objects) != 1 {
			t.Errorf("%d objects, %v", len(objects), err)
		}
	}
}
