package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
)

// Mapper finds the resources of kinds.
type Mapper interface {
	RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
}

// Desire returns the desired objects for the objects that were rendered for a
// parent, and a problem for each that cannot be applied: the API server has no such
// kind, the policy refuses it, or an earlier object has the same identity. More than
// MaxObjects are one problem. place
// returns the path of an object's template in the Configuration. The caller must not use
// the content of the objects afterwards.
func Desire(
	mapper Mapper, policy confine.Policy, parent ownership.Parent,
	rendered []templating.Object, place func(templating.Origin) string,
) ([]Desired, []*problem.Error) {
	if len(rendered) > MaxObjects {
		return nil, []*problem.Error{problem.At("spec."+parent.Level.String(), tooManyError(parent, len(rendered)))}
	}
	desired := make([]Desired, 0, len(rendered))
	var problems []*problem.Error
	first := make(map[inventory.Ref]string, len(rendered))
	for _, object := range rendered {
		at := place(object.Origin)
		want, err := desire(mapper, policy, parent, object)
		if other, found := first[want.Ref]; err == nil && found {
			err = duplicateError(want.Ref, other)
		}
		if err != nil {
			problems = append(problems, problem.At(at, err))
			continue
		}
		first[want.Ref], want.Place = at, at
		desired = append(desired, want)
	}
	return desired, problems
}

func desire(mapper Mapper, policy confine.Policy, parent ownership.Parent, object templating.Object) (Desired, error) {
	kind := (&unstructured.Unstructured{Object: object.Content}).GroupVersionKind()
	mapping, err := Mapping(mapper, kind)
	if err != nil {
		return Desired{}, err
	}
	if err := policy.Object(kind, namespaced(mapping), object.Content, object.Directives.OnConflict, parent.Namespace); err != nil {
		return Desired{}, err
	}
	return newDesired(parent, object, mapping)
}

// newDesired returns the desired object for a rendered one: in the parent's
// namespace if its kind is namespaced and it names no other, marked as the parent's,
// with its digest. The caller must not use the object's content afterwards.
func newDesired(parent ownership.Parent, object templating.Object, mapping *meta.RESTMapping) (Desired, error) {
	full := &unstructured.Unstructured{Object: object.Content}
	kind := mapping.GroupVersionKind
	asStored(kind.GroupKind(), full.Object)
	switch {
	case !namespaced(mapping):
		full.SetNamespace("") // the kind may have been namespaced when the template was written
	case full.GetNamespace() == "":
		full.SetNamespace(parent.Namespace)
	}
	var hashed any = full.Object
	if object.Directives.Once {
		// What ran once must not run again because a new version of the controller
		// adds other labels.
		hashed = withoutLabels(full.Object)
	}
	ownership.Mark(parent, full, object.Directives.DeletionPolicy == templating.DeletionOrphan)
	hash, err := digest(hashed)
	if err != nil {
		return Desired{}, err
	}
	return Desired{
		Ref:        inventory.RefOfObject(full),
		Kind:       kind,
		Resource:   mapping.Resource,
		Template:   int32(object.Origin.Index),
		Hash:       hash,
		Content:    full.Object,
		Directives: object.Directives,
	}, nil
}

func digest(content any) (string, error) {
	canonical, err := json.Marshal(content) // sorts the keys of maps
	if err != nil {
		return "", fmt.Errorf("encode as JSON: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:8]), nil
}

// withoutLabels returns a copy of a value without the labels that the controller
// adds to objects and to their Pod templates.
func withoutLabels(value any) any {
	switch value := value.(type) {
	case map[string]any:
		cleaned := make(map[string]any, len(value))
		for key, field := range value {
			cleaned[key] = withoutLabels(field)
			if labels, ok := cleaned[key].(map[string]any); ok && key == "labels" {
				maps.DeleteFunc(labels, func(label string, _ any) bool {
					return label == v0.LabelManagedBy || strings.HasPrefix(label, v0.Domain+"/")
				})
			}
		}
		return cleaned
	case []any:
		cleaned := make([]any, len(value))
		for i, entry := range value {
			cleaned[i] = withoutLabels(entry)
		}
		return cleaned
	}
	return value
}

// Mapping returns the mapping of the kind of an object that a template renders. Its errors are
// problems of the template.
func Mapping(mapper Mapper, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case meta.IsNoMatchError(err):
		return nil, KindUnavailableError(kind, err)
	case err != nil:
		return nil, fmt.Errorf("look up the resource of %s: %w", kind, err)
	}
	return mapping, nil
}

// Served returns the mapping of the kind of an existing object: in the version in which
// it was applied, or in another one if that is no longer served. A NoMatch error means that
// the API server serves no version of the kind, and therefore has no objects of it.
func Served(mapper Mapper, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return mapper.RESTMapping(kind.GroupKind())
	}
	return mapping, err
}

func namespaced(mapping *meta.RESTMapping) bool {
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

// KindUnavailableError returns the error for a kind that the API server does not
// serve.
func KindUnavailableError(kind schema.GroupVersionKind, err error) *problem.Error {
	return &problem.Error{
		Mistake: finding.Mistake{
			Cause: fmt.Sprintf("the API server has no kind %q in %q", kind.Kind, kind.GroupVersion()),
			Hint:  "correct apiVersion and kind, or install the CustomResourceDefinition that defines it",
		},
		Reason:    v0.ReasonKindUnavailable,
		Retryable: true,
		Err:       err,
	}
}

// duplicateError returns the error for an object that another template also
// renders.
func duplicateError(object inventory.Ref, other string) *problem.Error {
	return &problem.Error{
		Mistake: finding.Mistake{
			Cause: fmt.Sprintf("%s is also rendered by %s", object, other), Hint: "give one of them another metadata.name",
		},
		Reason:    v0.ReasonConflict,
		Retryable: true,
	}
}
