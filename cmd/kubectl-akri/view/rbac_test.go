package view

import (
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// grants returns a cluster in which a ServiceAccount has all permissions for some resources.
func grants(to types.NamespacedName, resources ...string) func(types.NamespacedName, authorizationv1.ResourceAttributes) bool {
	return func(account types.NamespacedName, right authorizationv1.ResourceAttributes) bool {
		return account == to && slices.Contains(resources, right.Resource)
	}
}

// camera returns a Configuration with a ServiceAccount, which may be "".
func camera(account string) *v0.Configuration {
	return &v0.Configuration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "plant", Name: "cam"}, Spec: v0.ConfigurationSpec{ServiceAccountName: account},
	}
}

// The roles for agents are in the namespaces of what they read.
func TestRolesForAgents(t *testing.T) {
	secret := func(namespace, name string) v0.DiscoveryProperty {
		reference := &v0.KeyReference{Namespace: namespace, Name: name}
		return v0.DiscoveryProperty{ValueFrom: &v0.DiscoveryPropertySource{SecretKeyRef: reference}}
	}
	configuration := camera("")
	configuration.Spec.DiscoveryHandler.DiscoveryProperties = []v0.DiscoveryProperty{
		{Name: "plain"}, secret("", "login"), secret("plant", "login"), secret("vault", "token"),
		{ValueFrom: &v0.DiscoveryPropertySource{ConfigMapKeyRef: &v0.KeyReference{Name: "ranges"}}},
	}
	rights := Rights{Configuration: configuration, Agent: types.NamespacedName{Namespace: "akri-system", Name: "akri-agent"}}
	rights.Granted = grants(rights.Agent, "secrets", "configmaps")
	if roles := Roles(rights); roles != "" {
		t.Errorf("all is granted:\n%s", roles)
	}
	rights.Granted = func(account types.NamespacedName, right authorizationv1.ResourceAttributes) bool {
		return account == rights.Agent && right.Namespace == "vault" && right.Name == "token"
	}
	if roles := Roles(rights); !strings.Contains(roles, "namespace: plant") || strings.Contains(roles, "vault") {
		t.Errorf("want only the Role that is missing:\n%s", roles)
	}
	rights.Granted = grants(rights.Controller, "secrets", "configmaps")
	roles := Roles(rights)
	for _, part := range []string{
		"  name: akri-discovery-cam\n  namespace: plant\nrules:", "  name: akri-discovery-plant-cam\n  namespace: vault\nrules:",
		"  resourceNames:\n  - login\n  resources:\n  - secrets\n  verbs:\n  - list\n  - watch\n",
		"  resourceNames:\n  - ranges\n  resources:\n  - configmaps\n", "  name: akri-agent\n  namespace: akri-system\n",
	} {
		if !strings.Contains(roles, part) {
			t.Errorf("the roles lack %q:\n%s", part, roles)
		}
	}
	if strings.Contains(roles, "ClusterRole") {
		t.Errorf("want no ClusterRole:\n%s", roles)
	}
}
