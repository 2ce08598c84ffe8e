package webhook

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

// pruneRequirements returns the permissions to delete the objects of templates that an update
// removes, because the controller prunes them: everything, if it is not known which they
// are. It omits those that are required already.
func (c *cluster) pruneRequirements(r admissionRequest, required []requirement) []requirement {
	if r.old == nil || r.configuration.Spec.ServiceAccountName != "" {
		return nil // objects are pruned with the permissions of the account
	}
	if r.oldUnread {
		return []requirement{{
			right: right{verb: "delete", group: "*", resource: "*", namespace: r.configuration.Namespace},
			place: "spec", pruned: "that cannot be read",
		}}
	}
	var requirements []requirement
	for _, tmpl := range c.writtenTemplates(r.old) {
		need := c.kindRequirement(tmpl, "delete", "spec")
		need.pruned = tmpl.place
		known := func(other requirement) bool { return other.right == need.right }
		if !slices.ContainsFunc(required, known) && !slices.ContainsFunc(requirements, known) {
			requirements = append(requirements, need)
		}
	}
	return requirements
}

// writtenTemplates returns the templates of a stored Configuration whose objects the
// controller may have applied and would prune. They are not compiled.
func (c *cluster) writtenTemplates(configuration *v0.Configuration) []*candidate {
	var written []*candidate
	add := func(tmpl *candidate) {
		tmpl.resolve(c.mapper, configuration.Namespace)
		if installed := tmpl.resource != nil || tmpl.err != nil; installed && !keepsObjects(tmpl.source) {
			written = append(written, tmpl)
		}
	}
	spec := configuration.Spec
	for level, list := range [][]v0.BrokerResource{
		templating.InstanceLevel: spec.InstanceBrokerResources, templating.ConfigurationLevel: spec.ConfigurationBrokerResources,
	} {
		for i := range list {
			tmpl := &candidate{place: fmt.Sprintf("spec.%s[%d]", templating.Level(level), i)}
			tmpl.read(list[i].Object)
			add(tmpl)
		}
	}
	broker := v0.BrokerSpec{}
	if spec.BrokerSpec != nil {
		broker = *spec.BrokerSpec
	}
	for _, field := range []struct {
		name  string
		value *runtime.RawExtension
	}{
		{"brokerSpec.brokerPodSpec", broker.BrokerPodSpec},
		{"brokerSpec.brokerJobSpec", broker.BrokerJobSpec},
		{"instanceServiceSpec", spec.InstanceServiceSpec},
		{"configurationServiceSpec", spec.ConfigurationServiceSpec},
	} {
		if field.value != nil {
			add(&candidate{place: "spec." + field.name, kind: legacyKinds[field.name]})
		}
	}
	return written
}

// keepsObjects reports whether a template's objects are kept when they are no longer
// rendered.
func keepsObjects(source map[string]any) bool {
	metadata, _ := source["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations[v0.Domain+"/deletion-policy"] == string(templating.DeletionOrphan)
}
