package view

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
)

// TestGranted checks that the list matches the installed role.
func TestGranted(t *testing.T) {
	data, err := os.ReadFile("../../../config/rbac/controller.yaml")
	if err != nil {
		t.Fatal(err)
	}
	installed := map[string][]string{}
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Name != "akri-controller-workloads" {
			continue
		}
		for key, value := range aggregated {
			if role.Labels[key] != value {
				t.Errorf("the label %s=%s is missing on the role in config/rbac", key, value)
			}
		}
		for _, rule := range role.Rules {
			if !slices.Equal(rule.Verbs, manageVerbs) {
				t.Errorf("the verbs for %v are %v, want %v", rule.Resources, rule.Verbs, manageVerbs)
			}
			for _, group := range rule.APIGroups {
				installed[group] = append(installed[group], rule.Resources...)
			}
		}
	}
	for _, pair := range []struct {
		name      string
		one, more map[string][]string
	}{{"config/rbac", installed, granted}, {"granted", granted, installed}} {
		for group, resources := range pair.one {
			for _, resource := range resources {
				if !slices.Contains(pair.more[group], resource) {
					t.Errorf("only %s has %s of %q", pair.name, resource, group)
				}
			}
		}
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
	roles := Roles(Rights{
		Configuration: configuration, Agent: types.NamespacedName{Namespace: "akri-system", Name: "akri-agent"},
	})
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

func TestRoles(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	secrets := schema.GroupResource{Resource: "secrets"}
	devices := schema.GroupResource{Group: "shifu.edgenesis.io", Resource: "edgedevices"}
	const clusterRole = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  labels:
    akri.sh/aggregate-to-controller: "true"
  name: akri-controller-plant-cam
rules:
- apiGroups:
  - ""
  resources:
  - secrets
  verbs:
  - get
  - list
  - watch
  - create
  - patch
  - delete
- apiGroups:
  - shifu.edgenesis.io
  resources:
  - edgedevices
  verbs:
  - get
  - list
  - watch
  - create
  - patch
  - delete
`
	cases := map[string]struct {
		reason string
		rights Rights
		want   string
	}{
		"as installed": {
			reason: "nothing is missing, so nothing is printed",
			rights: Rights{Configuration: camera(""), Resources: []schema.GroupResource{pods}},
		},
		"more": {
			reason: "installed permissions are not granted again; groups are sorted and resources are listed once",
			rights: Rights{Configuration: camera(""), Resources: []schema.GroupResource{devices, pods, secrets, secrets}},
			want:   clusterRole,
		},
		"a ServiceAccount": {
			reason: "it needs all permissions, only in its namespace; controller and webhook impersonate it; the controller can watch Pods already",
			rights: Rights{Configuration: camera("cams"), Resources: []schema.GroupResource{pods},
				Controller: types.NamespacedName{Namespace: "akri", Name: "controller"},
				Webhook:    types.NamespacedName{Namespace: "akri", Name: "webhook"}},
			want: `---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: akri-cam
  namespace: plant
rules:
- apiGroups:
  - ""
  resources:
  - pods
  verbs:
  - get
  - list
  - watch
  - create
  - patch
  - delete
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: akri-cam
  namespace: plant
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: akri-cam
subjects:
- kind: ServiceAccount
  name: cams
  namespace: plant
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: akri-acts-as-cams
  namespace: plant
rules:
- apiGroups:
  - ""
  resourceNames:
  - cams
  resources:
  - serviceaccounts
  verbs:
  - impersonate
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: akri-acts-as-cams
  namespace: plant
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: akri-acts-as-cams
subjects:
- kind: ServiceAccount
  name: controller
  namespace: akri
- kind: ServiceAccount
  name: webhook
  namespace: akri
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Roles(tc.rights); got != tc.want {
				t.Errorf("%s\ngot\n%s\nwant\n%s", tc.reason, got, tc.want)
			}
		})
	}
	seen := Roles(Rights{Configuration: camera("cams"), Resources: []schema.GroupResource{secrets}})
	if _, after, found := strings.Cut(seen, "kind: ClusterRole\n"); !found || strings.Contains(after, "create") ||
		!strings.Contains(after, "watch") {
		t.Errorf("with a ServiceAccount, the controller itself must only watch:\n%s", seen)
	}
}
