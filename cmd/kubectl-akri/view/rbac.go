package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// Rights describes the permissions that a Configuration needs.
type Rights struct {
	*v0.Configuration
	Resources []schema.GroupResource // of its objects
	// Controller, Webhook and Agent are the ServiceAccounts of the controller, of the
	// admission webhook and of the agents.
	Controller, Webhook, Agent types.NamespacedName
	// Granted reports whether a ServiceAccount has a permission.
	Granted func(types.NamespacedName, authorizationv1.ResourceAttributes) bool
}

// The verbs needed to manage objects and to watch them.
var (
	manageVerbs = []string{"get", "list", "watch", "create", "patch", "delete"}
	watchVerbs  = []string{"get", "list", "watch"}
)

// aggregated labels a ClusterRole that is aggregated to the controller's.
var aggregated = map[string]string{v0.LabelAggregate: "true"}

// Roles returns the roles of a Configuration that grant something that is missing, as YAML:
// for its objects, and for agents to read its discoveryProperties. Each is complete, so that
// it takes nothing away when it replaces a former one. It returns "" if nothing is missing.
func Roles(rights Rights) string {
	namespace, name, account := rights.Namespace, rights.Name, rights.Spec.ServiceAccountName
	var documents []string
	add := func(object any) { documents = append(documents, "---\n"+toYAML(object)) }
	bind := func(namespace, name string, rules []rbacv1.PolicyRule, accounts ...types.NamespacedName) {
		if !rights.lacking(namespace, rules, accounts...) {
			return
		}
		var subjects []rbacv1.Subject
		for _, account := range accounts {
			subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: account.Namespace})
		}
		meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
		add(rbacv1.Role{TypeMeta: kindOfRBAC("Role"), ObjectMeta: meta, Rules: rules})
		add(rbacv1.RoleBinding{
			TypeMeta: kindOfRBAC("RoleBinding"), ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: subjects,
		})
	}
	verbs := manageVerbs
	if account != "" && len(rights.Resources) > 0 {
		verbs = watchVerbs // the controller watches with its own permissions
		bind(namespace, "akri-"+name, rules(rights.Resources, manageVerbs),
			types.NamespacedName{Namespace: namespace, Name: account})
		bind(namespace, "akri-acts-as-"+account, []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{account},
			Verbs: []string{"impersonate"},
		}}, rights.Controller, rights.Webhook) // the webhook impersonates it in dry runs
	}
	if rules := rules(rights.Resources, verbs); rights.lacking(metav1.NamespaceAll, rules, rights.Controller) {
		add(rbacv1.ClusterRole{
			TypeMeta:   kindOfRBAC("ClusterRole"),
			ObjectMeta: metav1.ObjectMeta{Name: "akri-controller-" + namespace + "-" + name, Labels: aggregated},
			Rules:      rules,
		})
	}
	read := referenceRules(rights.Configuration)
	for _, where := range slices.Sorted(maps.Keys(read)) {
		role := "akri-discovery-" + name
		if where != namespace {
			role = "akri-discovery-" + namespace + "-" + name
		}
		bind(where, role, read[where], rights.Agent)
	}
	return strings.Join(documents, "")
}

// lacking reports whether one of the accounts does not have all that the rules grant in a
// namespace.
func (r Rights) lacking(namespace string, rules []rbacv1.PolicyRule, accounts ...types.NamespacedName) bool {
	for _, rule := range rules {
		need := authorizationv1.ResourceAttributes{Namespace: namespace, Group: rule.APIGroups[0]}
		names := rule.ResourceNames
		if names == nil {
			names = []string{""} // all
		}
		for _, need.Resource = range rule.Resources {
			for _, need.Name = range names {
				for _, need.Verb = range rule.Verbs {
					if slices.ContainsFunc(accounts, func(account types.NamespacedName) bool { return !r.Granted(account, need) }) {
						return true
					}
				}
			}
		}
	}
	return false
}

// referenceRules returns the rules that let agents read the Secrets and ConfigMaps in the
// discoveryProperties of a Configuration, by namespace.
func referenceRules(configuration *v0.Configuration) map[string][]rbacv1.PolicyRule {
	names := map[string]map[string][]string{} // by namespace and resource
	for _, property := range configuration.Spec.DiscoveryHandler.DiscoveryProperties {
		if property.ValueFrom == nil {
			continue
		}
		for resource, key := range map[string]*v0.KeyReference{
			"secrets": property.ValueFrom.SecretKeyRef, "configmaps": property.ValueFrom.ConfigMapKeyRef,
		} {
			if key == nil {
				continue
			}
			namespace := cmp.Or(key.Namespace, configuration.Namespace)
			if names[namespace] == nil {
				names[namespace] = map[string][]string{}
			}
			names[namespace][resource] = append(names[namespace][resource], key.Name)
		}
	}
	all := map[string][]rbacv1.PolicyRule{}
	for namespace, resources := range names {
		for _, resource := range slices.Sorted(maps.Keys(resources)) {
			slices.Sort(resources[resource])
			all[namespace] = append(all[namespace], rbacv1.PolicyRule{
				APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: slices.Compact(resources[resource]),
				Verbs: []string{"list", "watch"},
			})
		}
	}
	return all
}

func kindOfRBAC(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

// rules returns one rule for each API group, sorted.
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
