package webhook

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"akri.sh/akri/templating"
)

// trial is one template with what it gives for devices that stand in for real
// ones.
type trial struct {
	level templating.Level
	index int
	// place is the template as its author knows it, from spec on.
	place string
	// written is the template as its author wrote it; nil if it was made of one
	// of Akri's old fields.
	written map[string]any

	kind schema.GroupVersionKind
	// resource is nil where the API server does not serve the kind; err says why
	// else it is not known.
	resource *meta.RESTMapping
	err      error
	// namespace is where the objects go, "" for kinds without; name is theirs if
	// it is written out, "" if it is an expression.
	namespace, name string

	// objects are alternatives: the template is well if one of them is.
	objects []templating.Object
}

// field is a place inside the template, by a path that begins at the object.
func (t *trial) field(path string) string {
	if path == "" {
		return t.place
	}
	if t.written == nil { // an old field holds a spec
		rest, inside := strings.CutPrefix(path, "spec.")
		if !inside {
			return t.place
		}
		path = rest
	}
	return t.place + "." + path
}

// namespaced tells the scope of the kind; one that is unknown counts as having
// namespaces.
func (t *trial) namespaced() bool {
	return t.resource == nil || t.resource.Scope.Name() == meta.RESTScopeNameNamespace
}

// oldKinds are what Akri's old fields are converted into.
var oldKinds = map[string]schema.GroupVersionKind{
	"brokerSpec.brokerPodSpec": {Version: "v1", Kind: "Pod"},
	"brokerSpec.brokerJobSpec": {Group: "batch", Version: "v1", Kind: "Job"},
	"instanceServiceSpec":      {Version: "v1", Kind: "Service"},
	"configurationServiceSpec": {Version: "v1", Kind: "Service"},
}

// trialsOf makes a trial of each template; objects are to be added.
func trialsOf(r *review, mapper meta.RESTMapper) []*trial {
	var trials []*trial
	add := func(level templating.Level, count int, written func(int) map[string]any) {
		for index := range count {
			name := r.compiled.Name(level, index)
			t := &trial{level: level, index: index, place: inSpec(name), written: written(index), kind: oldKinds[name]}
			if t.written != nil {
				t.read()
			}
			t.resource, t.err = mapper.RESTMapping(t.kind.GroupKind(), t.kind.Version)
			if meta.IsNoMatchError(t.err) {
				t.resource, t.err = nil, nil
			}
			switch {
			case !t.namespaced():
				t.namespace = ""
			case t.namespace == "":
				t.namespace = r.configuration.Namespace
			}
			trials = append(trials, t)
		}
	}
	add(templating.InstanceLevel, r.compiled.Instance.Len(), func(i int) map[string]any {
		if list := r.configuration.Spec.InstanceBrokerResources; i < len(list) {
			return list[i].Object
		}
		return nil
	})
	add(templating.ConfigurationLevel, r.compiled.Group.Len(), func(i int) map[string]any {
		if list := r.configuration.Spec.ConfigurationBrokerResources; i < len(list) {
			return list[i].Object
		}
		return nil
	})
	return trials
}

// read takes from the template what cannot be an expression.
func (t *trial) read() {
	apiVersion, _ := t.written["apiVersion"].(string)
	kind, _ := t.written["kind"].(string)
	metadata, _ := t.written["metadata"].(map[string]any)
	t.kind = schema.FromAPIVersionAndKind(apiVersion, kind)
	t.namespace, _ = metadata["namespace"].(string)
	if name, _ := metadata["name"].(string); !strings.Contains(name, "{{") {
		t.name = name
	}
}

// unknownKind says that the API server does not serve the kind.
func (t *trial) unknownKind() string {
	return fmt.Sprintf("the API server has no kind %q in %q", t.kind.Kind, t.kind.GroupVersion())
}
