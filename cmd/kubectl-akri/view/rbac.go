package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// Rights are what the objects of a Configuration have to be made with.
type Rights struct {
	Namespace, Configuration string
	// ServiceAccount has the rights, if the Configuration names one; else the
	// controller has them.
	ServiceAccount string
	Resources      []schema.GroupResource
	// Controller is the controller's own ServiceAccount.
	Controller types.NamespacedName
}

// granted are the resources that the controller may handle as it is installed: the
// ClusterRole akri-controller-workloads of config/rbac.
var granted = map[string][]string{
	"":                  {"pods", "services", "configmaps", "persistentvolumeclaims"},
	"apps":              {"deployments", "statefulsets", "daemonsets"},
	"batch":             {"jobs", "cronjobs"},
	"networking.k8s.io": {"ingresses", "networkpolicies"},
}

// Verbs that making and keeping objects needs, and those of them that seeing them
// needs.
var (
	keeping = []string{"get", "list", "watch", "create", "patch", "delete"}
	seeing  = []string{"get", "list", "watch"}
)

// aggregated makes a ClusterRole part of the controller's.
var aggregated = map[string]string{v0.Domain + "/aggregate-to-controller": "true"}

// Roles are what has to be applied, beyond what is installed with Akri, before a
// Configuration's objects can be made: YAML, or empty if nothing is missing.
func Roles(rights Rights) string {
	missing := slices.DeleteFunc(slices.Clone(rights.Resources), func(resource schema.GroupResource) bool {
		return slices.Contains(granted[resource.Group], resource.Resource)
	})
	var documents []string
	add := func(object any) { documents = append(documents, manifest(object)) }
	verbs := keeping
	if rights.ServiceAccount != "" && len(rights.Resources) > 0 {
		verbs = seeing // the controller still watches by itself
		bound := func(name string, rules []rbacv1.PolicyRule, account types.NamespacedName) {
			meta := metav1.ObjectMeta{Name: name, Namespace: rights.Namespace}
			add(rbacv1.Role{TypeMeta: kindOfRBAC("Role"), ObjectMeta: meta, Rules: rules})
			add(rbacv1.RoleBinding{
				TypeMeta: kindOfRBAC("RoleBinding"), ObjectMeta: meta,
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: account.Namespace}},
			})
		}
		bound("akri-"+rights.Configuration, rules(rights.Resources, keeping),
			types.NamespacedName{Namespace: rights.Namespace, Name: rights.ServiceAccount})
		bound("akri-acts-as-"+rights.ServiceAccount, []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{rights.ServiceAccount}, Verbs: []string{"impersonate"},
		}}, rights.Controller)
	}
	if len(missing) > 0 {
		add(rbacv1.ClusterRole{
			TypeMeta:   kindOfRBAC("ClusterRole"),
			ObjectMeta: metav1.ObjectMeta{Name: "akri-controller-" + rights.Namespace + "-" + rights.Configuration, Labels: aggregated},
			Rules:      rules(missing, verbs),
		})
	}
	return strings.Join(documents, "")
}

func kindOfRBAC(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

// rules have one entry for each API group, sorted.
func rules(resources []schema.GroupResource, verbs []string) []rbacv1.PolicyRule {
	groups := map[string][]string{}
	for _, resource := range resources {
		if !slices.Contains(groups[resource.Group], resource.Resource) {
			groups[resource.Group] = append(groups[resource.Group], resource.Resource)
		}
	}
	list := make([]rbacv1.PolicyRule, 0, len(groups))
	for _, group := range slices.SortedFunc(maps.Keys(groups), cmp.Compare) {
		slices.Sort(groups[group])
		list = append(list, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: groups[group], Verbs: verbs})
	}
	return list
}

func manifest(object any) string { return "---\n" + toYAML(object) }
