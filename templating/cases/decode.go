package cases

import (
	"encoding/json"
	"errors"
	"slices"

	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/source"
)

// decodeConfiguration decodes the fields of a Configuration that rendering depends
// on. It reports a field of a wrong type and leaves it out, so that the rest is
// still checked.
func decodeConfiguration(d *source.Document) (configuration, []finding.Finding) {
	r := &reader{document: d}
	c := configuration{capacity: 1}
	field(r, &c.name, "a string", "metadata", "name")
	field(r, &c.namespace, "a string", "metadata", "namespace")
	field(r, &c.capacity, "a whole number", "spec", "capacity")
	field(r, &c.properties, "a map of strings to strings", "spec", "brokerProperties")
	field(r, &c.samples, "a map of strings to strings", "spec", "sampleProperties")
	for _, at := range [][]string{{"spec", "brokerSpec"}, {"spec"}} { // the latter in older versions of Akri
		field(r, &c.fields.BrokerPodSpec, "the spec of a Pod", append(at, "brokerPodSpec")...)
		field(r, &c.fields.BrokerJobSpec, "the spec of a Job", append(at, "brokerJobSpec")...)
	}
	field(r, &c.fields.InstanceServiceSpec, "the spec of a Service", "spec", "instanceServiceSpec")
	field(r, &c.fields.ConfigurationServiceSpec, "the spec of a Service", "spec", "configurationServiceSpec")
	c.perInstance = r.templates(templating.InstanceLevel)
	c.group = r.templates(templating.ConfigurationLevel)
	return c, r.mistakes
}

// decodeInstance is decodeConfiguration for an Instance.
func decodeInstance(d *source.Document) (instance, []finding.Finding) {
	var i instance
	r := &reader{document: d}
	field(r, &i.Metadata.Name, "a string", "metadata", "name")
	field(r, &i.Spec.BrokerProperties, "a map of strings to strings", "spec", "brokerProperties")
	field(r, &i.Spec.Nodes, "a list of strings", "spec", "nodes")
	field(r, &i.Spec.Shared, "true or false", "spec", "shared")
	return i, r.mistakes
}

// reader reads fields of a document and collects mistakes.
type reader struct {
	document *source.Document
	mistakes []finding.Finding
	reported []string // fields that have a mistake
}

// field decodes a field into value. The mistake of a wrong type is "must be " and
// what.
func field[T any](r *reader, value *T, what string, keys ...string) {
	found := r.find(keys...)
	if found == nil {
		return
	}
	data, err := json.Marshal(found)
	if err == nil {
		var read T
		if err = json.Unmarshal(data, &read); err == nil {
			*value = read
			return
		}
	}
	r.wrong(templating.Keys(keys...), what)
}

// find returns the value under keys, or nil.
func (r *reader) find(keys ...string) any {
	var value any = r.document.Object()
	for i, key := range keys {
		m, ok := value.(map[string]any)
		if !ok {
			if value != nil {
				r.wrong(templating.Keys(keys[:i]...), "a map of fields")
			}
			return nil
		}
		value = m[key]
	}
	return value
}

// templates returns the templates of a list as the document has them: whole numbers
// stay whole. An element that is not an object is nil.
func (r *reader) templates(level templating.Level) []map[string]any {
	found := r.find("spec", level.String())
	elements, ok := found.([]any)
	if !ok && found != nil {
		r.wrong(templating.Keys("spec", level.String()), "a list of objects")
	}
	templates := make([]map[string]any, len(elements))
	for i, element := range elements {
		template, ok := element.(map[string]any)
		if !ok {
			r.wrong(append(templating.Keys("spec", level.String()), templating.Index(i)), "an object with apiVersion, kind and metadata")
		}
		templates[i] = template
	}
	return templates
}

// wrong reports that a field must be something else, once per field.
func (r *reader) wrong(path templating.Path, what string) {
	if name := path.String(); !slices.Contains(r.reported, name) {
		r.reported = append(r.reported, name)
		r.mistakes = append(r.mistakes, mistakeAt(r.document, path, errors.New("must be "+what)))
	}
}

func mistakeAt(d *source.Document, path templating.Path, cause error) finding.Finding {
	return d.Finding(templating.Diagnostic{Field: path, Cause: cause})
}
