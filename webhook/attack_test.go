package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller"
)

// The users that config/ creates for the two processes.
const (
	controllerAccount = "system:serviceaccount:akri-system:akri-controller"
	webhookAccount    = "system:serviceaccount:akri-system:akri-webhook"
)

// rule is one line of a Role.
func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// grant gives a user permissions in the test's namespace.
func (w *world) grant(user string, rules ...rbacv1.PolicyRule) {
	w.Helper()
	w.grantTo(rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}, rules...)
	probe := right{verb: rules[0].Verbs[0], group: rules[0].APIGroups[0], resource: rules[0].Resources[0], namespace: w.Namespace}
	if len(rules[0].ResourceNames) > 0 {
		probe.name = rules[0].ResourceNames[0]
	}
	c, err := newCluster(w.options)
	if err != nil {
		w.Fatal(err)
	}
	w.Eventually("the authorizer has seen the role", func() string {
		if allowed, err := c.may(w.Context(), userInfo(user), probe); err != nil || !allowed {
			return fmt.Sprintf("%v, %v", allowed, err)
		}
		return ""
	})
}

// grantTo gives a user or group permissions in the test's namespace.
func (w *world) grantTo(subject rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	w.Helper()
	meta := w.Meta(strings.ReplaceAll(subject.Name, ":", "-"))
	reference := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}
	if err := errors.Join(
		w.Create(w.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}),
		w.Create(w.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: reference, Subjects: []rbacv1.Subject{subject}}),
	); err != nil {
		w.Fatal(err)
	}
}

// grantEverywhere gives a user permissions in all namespaces until the test ends.
func (w *world) grantEverywhere(user string, rules ...rbacv1.PolicyRule) {
	w.Helper()
	meta := metav1.ObjectMeta{Name: w.Namespace}
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
		},
	} {
		if err := w.Create(w.Context(), object); err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() {
			if err := w.Delete(background, object); err != nil {
				w.Error(err)
			}
		})
	}
}

// configurations is the permission to write Configurations, which all users here have.
var configurations = rule(v0.Domain, "configurations", "get", "create", "patch", "update")

// grantController grants the controller the permissions that config/rbac gives it,
// without those that operators add.
func (w *world) grantController() {
	w.Helper()
	w.grantRoles("rbac/controller.yaml", "akri-controller", "akri.sh/aggregate-to-controller")
}

// grantRoles installs a manifest of config/rbac, with the rules of the ClusterRoles that
// are aggregated in the one with the given name.
func (w *world) grantRoles(file, aggregated, label string) {
	w.Helper()
	var rules []any
	for _, object := range w.manifest(file) {
		if object.GetLabels()[label] == "true" {
			rules = append(rules, object.Object["rules"].([]any)...)
		}
	}
	w.install(file, func(object *unstructured.Unstructured) {
		// kube-controller-manager, which aggregates roles, does not run here.
		if object.GetKind() == "ClusterRole" && object.GetName() == aggregated {
			unstructured.RemoveNestedField(object.Object, "aggregationRule")
			object.Object["rules"] = rules
		}
	})
}

// actingAs returns a configuration that acts as a ServiceAccount.
func (w *world) actingAs(account string) *rest.Config {
	config := rest.CopyConfig(w.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: account, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	return config
}

// control runs the controller with the permissions of grantController.
func (w *world) control() {
	w.Helper()
	w.grantController()
	config := w.actingAs(controllerAccount)
	scheme := runtime.NewScheme()
	if err := v0.AddToScheme(scheme); err != nil {
		w.Fatal(err)
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme: scheme, Cache: controller.CacheOptions(), Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(background)
	if err := controller.Setup(ctx, mgr, controller.Options{Workers: 2}); err != nil {
		w.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("the controller returned: %v", err)
		}
	})
}

// attack is something that mallory tries to achieve through a Configuration.
type attack struct {
	// spec has further lines of YAML below spec.
	spec string
	// admission is part of the webhook's message.
	admission string
	// otherwise is part of the message that prevents the attack without the
	// webhook: the API server's, or a condition of the controller. "" is the same.
	otherwise string
	// loot must not exist afterwards.
	loot schemaObject
	// rights are mallory's permissions in addition to Pods and configmaps.
	rights []rbacv1.PolicyRule
}

type schemaObject struct{ apiVersion, kind, namespace, name string }

func brokers(templates ...string) string {
	return "  instanceBrokerResources: [" + strings.Join(templates, ", ") + "]\n"
}

var attacks = map[string]attack{
	"objects that the requester may not create": {
		spec: brokers(`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: "{{ INSTANCE_NAME }}"}, spec: {selector: {matchLabels: ` +
			`{a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: evil}]}}}}`),
		admission: `spec.instanceBrokerResources[0]: user "mallory" may not create, delete, patch daemonsets.apps in namespace`,
		otherwise: "may not create daemonsets",
		loot:      schemaObject{apiVersion: "apps/v1", kind: "DaemonSet", name: "loot"},
	},
	"the same in Akri's legacy fields": {
		spec:      "  brokerSpec: {brokerJobSpec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: evil}]}}}}\n",
		admission: `spec.brokerSpec.brokerJobSpec: user "mallory" may not create, delete, patch jobs.batch`,
		otherwise: "may not create jobs",
		loot:      schemaObject{apiVersion: "batch/v1", kind: "Job", name: "loot-1-job"},
	},
	"the same behind a condition that no made-up device meets": {
		spec: brokers(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: "{{ INSTANCE_NAME }}", annotations: {akri.sh/when: ` +
			`"{{ eq (get INSTANCE_PROPERTIES \"K\" | default \"\") \"evil\" }}"}}, spec: {selector: {matchLabels: {a: b}}, template: ` +
			`{metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: evil}]}}}}`),
		admission: `may not create, delete, patch deployments.apps`,
		otherwise: "may not create deployments",
		loot:      schemaObject{apiVersion: "apps/v1", kind: "Deployment", name: "loot"},
	},
	"a Secret, by a requester without the permission": {
		spec:      brokers(`{apiVersion: v1, kind: Secret, metadata: {name: "{{ INSTANCE_NAME }}"}, stringData: {k: v}}`),
		admission: `may not create, delete, patch secrets`,
		otherwise: "the controller may not manage secrets",
		loot:      schemaObject{apiVersion: "v1", kind: "Secret", name: "loot"},
	},
	"a cluster-scoped object": {
		spec: brokers(`{apiVersion: v1, kind: PersistentVolume, metadata: {name: "{{ INSTANCE_NAME }}"}, spec: {capacity: {storage: ` +
			`1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /}}}`),
		admission: "is cluster-scoped",
		loot:      schemaObject{apiVersion: "v1", kind: "PersistentVolume", name: "loot"},
	},
	"the token of an account, by an expression": {
		spec: brokers(`{apiVersion: v1, kind: Secret, metadata: {name: "{{ INSTANCE_NAME }}", annotations: ` +
			`{kubernetes.io/service-account.name: default}}, type: "{{ print \"kubernetes.io/\" \"service-account-token\" }}"}`),
		admission: "holds credentials of the cluster",
		loot:      schemaObject{apiVersion: "v1", kind: "Secret", name: "loot"},
		rights:    []rbacv1.PolicyRule{rule("", "secrets", "create", "patch", "delete")},
	},
	"a token Secret that exists": {
		spec:      brokers(`{apiVersion: v1, kind: Secret, metadata: {name: "{{ INSTANCE_NAME }}", annotations: {akri.sh/on-conflict: adopt}}}`),
		admission: "takes over a Secret of any type",
		loot:      schemaObject{apiVersion: "v1", kind: "Secret", name: "loot"},
		rights:    []rbacv1.PolicyRule{rule("", "secrets", "get", "create", "patch", "delete")},
	},
	"the permissions of another account": {
		spec:      brokers(`{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}"}}`) + "  serviceAccountName: powerful\n",
		admission: `spec.serviceAccountName: user "mallory" may not impersonate serviceaccounts powerful`,
		otherwise: "may not impersonate ServiceAccount powerful",
		loot:      schemaObject{apiVersion: "v1", kind: "ConfigMap", name: "loot"},
	},
	"a key that an expression makes the kind, for some devices": {
		spec: brokers(`{apiVersion: v1, kind: ConfigMap, "{{ if eq (get INSTANCE_PROPERTIES \"K\" | default \"\") \"evil\" }}kind{{ ` +
			`else }}data{{ end }}": "{{ if eq (get INSTANCE_PROPERTIES \"K\" | default \"\") \"evil\" }}Secret{{ end }}", metadata: {name: ` +
			`"{{ INSTANCE_NAME }}"}}`),
		admission: "spec.instanceBrokerResources[0]",
		otherwise: "instanceBrokerResources[0]",
		loot:      schemaObject{apiVersion: "v1", kind: "Secret", name: "loot"},
	},
	"a kind that is not installed yet": {
		spec:      brokers(`{apiVersion: later.example/v1, kind: Thing, metadata: {name: "{{ INSTANCE_NAME }}"}}`),
		admission: "may not create, delete, patch things.later.example",
		otherwise: `has no kind "Thing"`, // and the controller may not manage it once it has
		loot:      schemaObject{apiVersion: "v1", kind: "ConfigMap", name: "nothing"},
	},
	"a name by expression, with permission for one name": {
		spec:      brokers(`{apiVersion: v1, kind: Service, metadata: {name: "{{ INSTANCE_NAME }}"}, spec: {ports: [{port: 1}]}}`),
		admission: "may not create, delete, patch services",
		otherwise: "may not create services",
		loot:      schemaObject{apiVersion: "v1", kind: "Service", name: "loot"},
		rights: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, ResourceNames: []string{"mine"},
			Verbs: []string{"create", "patch", "delete"}}},
	},
}

func (a attack) configuration() string {
	return "\napiVersion: akri.sh/v0\nkind: Configuration\nmetadata: {name: attack}\nspec:\n  discoveryHandler: {name: h}\n" + a.spec
}

// mallory may write Configurations, Pods and ConfigMaps.
func (w *world) mallory(a attack) *person {
	w.Helper()
	w.grant("mallory", append([]rbacv1.PolicyRule{
		configurations,
		rule("", "pods", "create", "patch", "delete"),
		rule("", "configmaps", "create", "patch", "delete"),
	}, a.rights...)...)
	return w.as("mallory")
}

// A Configuration does not let its author do anything that they could not do
// directly.
func TestAttacksThroughAdmission(t *testing.T) {
	for name, a := range attacks {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.guard()
			expect(t, w.mallory(a).apply(a.configuration()), a.admission)
		})
	}
}

// The same without the webhook: the schema, the policy, the controller and its
// permissions remain.
func TestAttacksThroughTheController(t *testing.T) {
	shared := newWorld(t)
	shared.grant("mallory", configurations)
	probe, tries := strings.Replace(attacks["objects that the requester may not create"].configuration(), "attack", "probe", 1), 0
	enforced := func() bool {
		tries++ // an unchanged spec is not reviewed
		return shared.as("mallory").apply(fmt.Sprintf("%s  capacity: %d\n", probe, tries)) != nil
	}
	t.Cleanup(func() { // after the policy was removed
		shared.Eventually("the policy is no longer enforced", func() string {
			if enforced() {
				return "mallory may not create a DaemonSet"
			}
			return ""
		})
	})
	shared.install("policy/authors.yaml", nil)
	shared.Eventually("the policy is enforced", func() string {
		if !enforced() {
			return "mallory may create a DaemonSet"
		}
		return ""
	})
	shared.control()
	for name, a := range attacks {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			mallory, otherwise := w.mallory(a), cmp.Or(a.otherwise, a.admission)
			if err := mallory.apply(a.configuration()); err != nil {
				expect(t, err, otherwise)
				return
			}
			w.device("attack", "attack-loot", `{K: evil}`)
			w.Eventually("the controller refuses", func() string {
				conditions := w.conditions("attack-loot")
				if !strings.Contains(conditions, otherwise) {
					return "its conditions are: " + conditions
				}
				return ""
			})
			if w.exists(a.loot) {
				t.Errorf("%s %s exists", a.loot.kind, a.loot.name)
			}
		})
	}
}

// device creates an Instance as an agent does.
func (w *world) device(configuration, name, properties string) {
	w.Helper()
	admin := w.as("")
	owner, err := admin.api.Resource(v0.ConfigurationResource).Namespace(w.Namespace).Get(w.Context(), configuration, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	admin.make(v0.InstanceResource, fmt.Sprintf(`
apiVersion: akri.sh/v0
kind: Instance
metadata:
  name: %s
  labels: {akri.sh/configuration: %s}
  ownerReferences: [{apiVersion: akri.sh/v0, kind: Configuration, name: %s, uid: %s, controller: true}]
spec: {configurationName: %s, cdiName: akri.sh/x=1, capacity: 1, nodes: [node-a], brokerProperties: %s}
`, name, configuration, configuration, owner.GetUID(), configuration, properties))
}

// conditions returns the conditions of an Instance as text.
func (w *world) conditions(instance string) string {
	w.Helper()
	object, err := w.as("").api.Resource(v0.InstanceResource).Namespace(w.Namespace).Get(w.Context(), instance, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return fmt.Sprint(conditions)
}

func (w *world) exists(object schemaObject) bool {
	w.Helper()
	content := &unstructured.Unstructured{}
	content.SetAPIVersion(object.apiVersion)
	content.SetKind(object.kind)
	kind := content.GroupVersionKind()
	mapping, err := w.options.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		w.Fatal(err)
	}
	namespace := object.namespace
	if namespace == "" && mapping.Scope.Name() == "namespace" {
		namespace = w.Namespace
	}
	_, err = w.as("").api.Resource(mapping.Resource).Namespace(namespace).Get(w.Context(), object.name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
	return err == nil
}

// A Configuration that a finalizer keeps is reviewed until it has gone: its spec
// cannot be changed to what its author may not create.
func TestEditingATerminatingConfiguration(t *testing.T) {
	w := newWorld(t)
	w.guard()
	w.grant("eve", configurations)
	eve := w.as("eve")
	text := configuration("", "")
	held := strings.Replace(text, "{name: cam}", "{name: cam, finalizers: [example.com/held]}", 1)
	if err := eve.apply(held); err != nil {
		t.Fatal(err)
	}
	api := w.as("").api.Resource(v0.ConfigurationResource).Namespace(w.Namespace)
	if err := api.Delete(t.Context(), "cam", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect(t, eve.apply(strings.Replace(held, "instanceBrokerResources: []", "instanceBrokerResources: ["+aPod+"]", 1)),
		`user "eve" may not create, delete, patch pods`)
	expect(t, eve.apply(held+"  brokerProperties: {K: v}\n"), "") // takes nothing that eve lacks
	expect(t, eve.apply(text), "")                                // removes the finalizer
	if _, err := api.Get(t.Context(), "cam", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Configuration is still there: %v", err)
	}
}
