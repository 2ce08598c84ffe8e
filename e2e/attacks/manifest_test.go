package attacks

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// object is an object as JSON has it.
type object map[string]any

// parse returns the object of a manifest in YAML. It panics if the manifest, which
// is part of a test, is not valid.
func parse(manifest string) object {
	var o object
	if err := yaml.UnmarshalStrict([]byte(manifest), &o); err != nil {
		panic(fmt.Sprintf("%v:\n%s", err, manifest))
	}
	return o
}

// json returns the object as a request's body.
func (o object) json() []byte {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return text
}

// at returns the value under keys, or nil.
func (o object) at(keys ...string) any {
	var value any = map[string]any(o)
	for _, key := range keys {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = fields[key]
	}
	return value
}

// set sets a value under keys, and returns the object.
func (o object) set(value any, keys ...string) object {
	fields := map[string]any(o)
	for _, key := range keys[:len(keys)-1] {
		fields = fields[key].(map[string]any)
	}
	fields[keys[len(keys)-1]] = value
	return o
}

// text returns the string under keys, or "".
func (o object) text(keys ...string) string {
	value, _ := o.at(keys...).(string)
	return value
}

// number returns the number under keys, or 0.
func (o object) number(keys ...string) int {
	value, _ := o.at(keys...).(float64)
	return int(value)
}

// name, namespace and uid identify an object.
func (o object) name() string      { return o.text("metadata", "name") }
func (o object) namespace() string { return o.text("metadata", "namespace") }
func (o object) uid() string       { return o.text("metadata", "uid") }

// terminating reports whether the object is being deleted.
func (o object) terminating() bool { return o.text("metadata", "deletionTimestamp") != "" }

// condition returns a condition as "STATUS REASON: MESSAGE", or "".
func (o object) condition(served string) string {
	conditions, _ := o.at("status", "conditions").([]any)
	for _, entry := range conditions {
		if fields, ok := entry.(map[string]any); ok && fields["type"] == served {
			return fmt.Sprintf("%v %v: %v", fields["status"], fields["reason"], fields["message"])
		}
	}
	return ""
}

// kind is where the API server serves a kind.
type kind struct {
	version, plural string
	clusterScoped   bool
}

var kinds = map[string]kind{
	"Configuration":                    {"akri.sh/v0", "configurations", false},
	"Instance":                         {"akri.sh/v0", "instances", false},
	"ConfigMap":                        {"v1", "configmaps", false},
	"Secret":                           {"v1", "secrets", false},
	"Service":                          {"v1", "services", false},
	"ServiceAccount":                   {"v1", "serviceaccounts", false},
	"Pod":                              {"v1", "pods", false},
	"PersistentVolumeClaim":            {"v1", "persistentvolumeclaims", false},
	"Event":                            {"v1", "events", false},
	"Namespace":                        {"v1", "namespaces", true},
	"Node":                             {"v1", "nodes", true},
	"Deployment":                       {"apps/v1", "deployments", false},
	"DaemonSet":                        {"apps/v1", "daemonsets", false},
	"StatefulSet":                      {"apps/v1", "statefulsets", false},
	"Job":                              {"batch/v1", "jobs", false},
	"CronJob":                          {"batch/v1", "cronjobs", false},
	"Ingress":                          {"networking.k8s.io/v1", "ingresses", false},
	"NetworkPolicy":                    {"networking.k8s.io/v1", "networkpolicies", false},
	"Role":                             {"rbac.authorization.k8s.io/v1", "roles", false},
	"RoleBinding":                      {"rbac.authorization.k8s.io/v1", "rolebindings", false},
	"ClusterRole":                      {"rbac.authorization.k8s.io/v1", "clusterroles", true},
	"ClusterRoleBinding":               {"rbac.authorization.k8s.io/v1", "clusterrolebindings", true},
	"CustomResourceDefinition":         {"apiextensions.k8s.io/v1", "customresourcedefinitions", true},
	"ValidatingAdmissionPolicy":        {"admissionregistration.k8s.io/v1", "validatingadmissionpolicies", true},
	"ValidatingAdmissionPolicyBinding": {"admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings", true},
	"SelfSubjectAccessReview":          {"authorization.k8s.io/v1", "selfsubjectaccessreviews", true},
	"ValidatingWebhookConfiguration":   {"admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", true},
	"ReplicaSet":                       {"apps/v1", "replicasets", false},
}

// pathOf returns the path of the objects of a kind, or of one of them if name is
// not empty.
func pathOf(kindName, namespace, name string) string {
	k, known := kinds[kindName]
	if !known {
		panic("kind " + kindName + " is not in the table")
	}
	return pathIn(k.version, k.plural, namespaceOf(k, namespace), name)
}

func namespaceOf(k kind, namespace string) string {
	if k.clusterScoped {
		return ""
	}
	return namespace
}

// pathIn returns the path of a resource, or of one object of it.
func pathIn(version, plural, namespace, name string) string {
	path := "/apis/" + version
	if !strings.Contains(version, "/") {
		path = "/api/" + version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + plural
	if name != "" {
		path += "/" + name
	}
	return path
}

// spec is what a test's Configuration has besides its handler.
type spec struct {
	// devices are the descriptions of debugEcho's devices.
	devices []string
	// instance and group are the templates of the two lists, in YAML.
	instance, group []string
	// more are further fields of the spec, in YAML.
	more string
}

// configuration returns a Configuration for the handler debugEcho.
func configuration(name string, s spec) object {
	if s.more == "" {
		s.more = "{}"
	}
	fields := parse(s.more)
	if fields["discoveryHandler"] == nil {
		details, err := json.Marshal(map[string]any{"descriptions": append([]string{}, s.devices...)})
		if err != nil {
			panic(err)
		}
		fields["discoveryHandler"] = map[string]any{"name": "debugEcho", "discoveryDetails": string(details)}
	}
	for list, templates := range map[string][]string{"instanceBrokerResources": s.instance, "configurationBrokerResources": s.group} {
		if len(templates) == 0 {
			continue
		}
		var all []any
		for _, template := range templates {
			all = append(all, map[string]any(parse(template)))
		}
		fields[list] = all
	}
	return object{
		"apiVersion": "akri.sh/v0", "kind": "Configuration",
		"metadata": map[string]any{"name": name}, "spec": map[string]any(fields),
	}
}

// configMap returns the template, or the manifest, of a ConfigMap with one value.
func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %q}\ndata: {k: %q}\n", name, value)
}

// annotated adds directives to a template.
func annotated(template string, directives ...string) string {
	o := parse(template)
	metadata := o["metadata"].(map[string]any)
	annotations := map[string]any{}
	for i := 0; i+1 < len(directives); i += 2 {
		annotations["akri.sh/"+directives[i]] = directives[i+1]
	}
	metadata["annotations"] = annotations
	return string(o.json())
}
