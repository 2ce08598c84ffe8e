package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
)

const (
	aPod       = `{apiVersion: v1, kind: Pod, metadata: {name: "{{ INSTANCE_NAME }}"}, spec: {containers: [{name: a, image: b}]}}`
	aConfigMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}"}}`
)

var everyVerb = []string{"create", "patch", "delete"}

// A requester needs permission for the objects that their templates create.
func TestAuthorize(t *testing.T) {
	named := func(name string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, ResourceNames: []string{name}, Verbs: everyVerb}
	}
	const group = `{apiVersion: v1, kind: Service, metadata: {name: "cameras"}, spec: {ports: [{port: 80}]}}`
	for name, tc := range map[string]struct {
		rules           []rbacv1.PolicyRule
		instance, group string
		fields          string
		refused         string
	}{
		"everything needed": {rules: []rbacv1.PolicyRule{rule("", "pods", everyVerb...)}, instance: aPod},
		"all but delete":    {rules: []rbacv1.PolicyRule{rule("", "pods", "create", "patch")}, instance: aPod, refused: "may not delete pods"},
		"nothing to create": {},
		"one of two kinds": {rules: []rbacv1.PolicyRule{rule("", "pods", everyVerb...)},
			instance: aPod + "," + strings.Replace(aConfigMap, "NAME }}", "NAME }}-c",
				1), refused: `spec.instanceBrokerResources[1]: user "ann" may not create, delete, patch configmaps`},
		"permission for one name": {rules: []rbacv1.PolicyRule{named("cameras")}, group: group},
		"permission for another name": {rules: []rbacv1.PolicyRule{named("lamps")}, group: group, refused: "may not create, delete, patch " +
			"services cameras"},
		"delegate": {rules: []rbacv1.PolicyRule{rule(v0.Domain, "configurations", verbDelegate)}, instance: aPod},
		"impersonate": {rules: []rbacv1.PolicyRule{rule("", "serviceaccounts", "impersonate")}, instance: aPod,
			fields: "  serviceAccountName: maker\n"},
		"delegate, another's account": {rules: []rbacv1.PolicyRule{rule(v0.Domain, "configurations", verbDelegate)}, instance: aPod,
			fields: "  serviceAccountName: maker\n", refused: "may not impersonate"},
		"an unknown kind, its whole group": {rules: []rbacv1.PolicyRule{rule("new.example", "*", everyVerb...)}, instance: `{apiVersion: ` +
			`new.example/v1, kind: Thing, metadata: {name: "{{ INSTANCE_NAME }}"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.fields != "" {
				w.grant("system:serviceaccount:"+w.Namespace+":maker", rule("", "pods", "get", "create", "patch", "delete"))
			}
			w.authorized(configuration(tc.instance, tc.group)+tc.fields, tc.refused, tc.rules)
		})
	}
}

// authorized applies a Configuration as ann, who may write Configurations and has some more rights.
func (w *world) authorized(text, refused string, rules []rbacv1.PolicyRule) {
	w.Helper()
	w.guard()
	w.grant("ann", append([]rbacv1.PolicyRule{configurations}, rules...)...)
	err := w.as("ann").apply(text)
	expect(w, err, refused)
	if refused != "" && !apierrors.IsForbidden(err) {
		w.Errorf("the reason is %s, want Forbidden", apierrors.ReasonForError(err))
	}
}

// Editing another user's Configuration does not bypass RBAC either.
func TestEditingAnothersConfiguration(t *testing.T) {
	w := newWorld(t)
	w.guard()
	w.grant("eve", configurations)
	admin, eve := w.as(""), w.as("eve")
	text := configuration(aPod, "")
	if err := admin.apply(text); err != nil {
		t.Fatal(err)
	}
	expect(t, eve.apply(strings.Replace(text, "image: b", "image: evil", 1)), "may not create, delete, patch pods")
	expect(t, eve.apply(text+"  brokerProperties: {K: v}\n"), "may not create, delete, patch pods")
	expect(t, eve.apply(strings.Replace(text, "{name: cam}", "{name: cam, labels: {mine: \"1\"}}", 1)), "") // not in the spec
	// To remove a template is to delete its objects.
	expect(t, eve.apply(configuration("", "")), `spec: user "eve" may not delete pods in namespace `+w.Namespace+
		`, and without the former template spec.instanceBrokerResources[0] its objects would be deleted`)
	w.grant("dan", configurations, rule("", "pods", "delete"))
	expect(t, w.as("dan").apply(configuration("", "")), "")
	kept := strings.Replace(aPod, "metadata: {", "metadata: {annotations: {akri.sh/deletion-policy: orphan}, ", 1)
	expect(t, admin.apply(configuration(kept, "")), "")
	expect(t, eve.apply(configuration("", "")), "")
	const legacy = "  brokerSpec: {brokerPodSpec: {containers: [{name: a, image: b}]}}\n"
	expect(t, admin.apply(configuration("", "")+legacy), "")
	expect(t, eve.apply(configuration("", "")), "without the former template spec.brokerSpec.brokerPodSpec")
}

// Access reviews contain the groups, the UID and the extra fields of the requester.
func TestTheWholeRequesterIsReviewed(t *testing.T) {
	w := newWorld(t)
	w.guard()
	w.grant("bob", configurations)
	w.grantTo(rbacv1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "makers"}, rule("", "pods", everyVerb...))
	expect(t, w.as("bob").apply(configuration(aPod, "")), "may not create")
	w.Eventually("the authorizer has seen the group's permission", func() string {
		if err := w.as("bob", "makers").apply(configuration(aPod, "")); err != nil {
			return err.Error()
		}
		return ""
	})
}

// If the controller lacks a permission, the Configuration is denied and the message
// says how to grant it.
func TestTheControllerLacksARight(t *testing.T) {
	w := newWorld(t)
	w.grant(controllerAccount, rule("", "pods", "get", "create", "patch"))
	acting := rest.CopyConfig(w.Config)
	acting.Impersonate = rest.ImpersonationConfig{UserName: controllerAccount}
	restricted, err := newCluster(Options{Config: acting, Mapper: w.options.Mapper})
	if err != nil {
		t.Fatal(err)
	}
	chain, err := NewChain(w.options)
	if err != nil {
		t.Fatal(err)
	}
	chain.objects = restricted.objects // for dry runs, but not for access reviews
	w.serve(Handler(chain))
	expect(t, w.as("").apply(configuration(aPod, "")), "")
	err = w.as("").apply(configuration(aPod+","+strings.Replace(aConfigMap, "NAME }}", "NAME }}-c", 1), ""))
	expect(t, err, "spec.instanceBrokerResources[1]: the controller may not manage configmaps; label a ClusterRole "+
		"akri.sh/aggregate-to-controller=true that has the rule")
	expect(t, w.as("").apply(configuration(`{apiVersion: v1, kind: Secret, metadata: {name: "{{ INSTANCE_NAME }}"}}`, "")),
		"the controller may not manage secrets; label a ClusterRole")
}

// Messages do not show existing objects, and nothing is written.
func TestDryRunsLeakAndWriteNothing(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	admin.make(configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, labels: {l: hush}}, data: {k: hush}}`)
	admin.make(secrets, `{apiVersion: v1, kind: Secret, metadata: {name: theirs}, stringData: {k: hush}}`)
	// Without get, she would not get as far as a dry run.
	verbs := append(everyVerb, "get")
	w.grant("eve", configurations, rule("", "configmaps", verbs...), rule("", "secrets", verbs...))
	eve := w.as("eve")
	before := w.state()
	for i, template := range []string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, annotations: {akri.sh/on-conflict: adopt}}, data: {k: 1}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}, data: {k: mine}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, annotations: {akri.sh/on-conflict: adopt}}, ` +
			`data: {k: mine}, immutable: true}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: theirs, annotations: {akri.sh/on-conflict: adopt}}, type: kubernetes.io/tls, ` +
			`stringData: {x: mine}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: theirs}, stringData: {x: mine}}`,
	} {
		err := eve.apply(strings.Replace(configuration("", template), "{name: cam}", fmt.Sprintf("{name: leak-%d}", i), 1))
		if answer := fmt.Sprint(err, eve.warnings.take()); strings.Contains(answer, "hush") {
			t.Errorf("%s\n got the response %s", template, answer)
		}
	}
	if after := w.state(); !slices.Equal(after, before) {
		t.Errorf("something was written: %q after %q", after, before)
	}
}

// state returns the resourceVersions of the ConfigMaps and Secrets.
func (w *world) state() (versions []string) {
	w.Helper()
	for _, resource := range []schema.GroupVersionResource{configMaps, secrets} {
		list, err := w.as("").api.Resource(resource).Namespace(w.Namespace).List(w.Context(), metav1.ListOptions{})
		if err != nil {
			w.Fatal(err)
		}
		for _, item := range list.Items {
			versions = append(versions, resource.Resource, item.GetName(), item.GetResourceVersion())
		}
	}
	return versions
}

// No client of this package can write.
func TestGuard(t *testing.T) {
	w := newWorld(t)
	guarded, err := dynamic.NewForConfig(guarded(w.Config))
	if err != nil {
		t.Fatal(err)
	}
	w.as("").make(configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: there}}`)
	api := guarded.Resource(configMaps).Namespace(w.Namespace)
	before := w.state()
	object := decode(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: there}, data: {k: v}}`)
	if _, err := api.Apply(t.Context(), "there", object, metav1.ApplyOptions{FieldManager: "x", Force: true}); err != nil {
		t.Error(err)
	}
	object.SetName("new")
	if _, err := api.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := api.Patch(t.Context(), "there", types.MergePatchType, []byte(`{"data":{"k":"v"}}`), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	if err := api.Delete(t.Context(), "there", metav1.DeleteOptions{}); err == nil {
		t.Error("a deletion was sent")
	}
	if err := api.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}); err == nil {
		t.Error("a deletion of all was sent")
	}
	webhook, err := newCluster(w.options)
	if err != nil {
		t.Fatal(err)
	}
	w.grant("system:serviceaccount:"+w.Namespace+":maker", rule("", "configmaps", "get", "create", "patch", "delete"))
	for _, account := range []string{"", "maker"} {
		client := webhook.client(&v0.Configuration{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace}, Spec: v0.ConfigurationSpec{ServiceAccountName: account},
		})
		object.SetName("by" + account)
		object.SetNamespace(w.Namespace)
		if _, err := client.Create(t.Context(), &plan.Desired{Kind: object.GroupVersionKind(), Resource: configMaps, Content: object.Object},
			ownership.Claim{}); err != nil {
			t.Errorf("as %q: %v", account, err)
		}
		if err := client.Delete(t.Context(), configMaps, types.NamespacedName{Namespace: w.Namespace, Name: "there"}, "x", "1"); err == nil {
			t.Errorf("as %q a deletion was sent", account)
		}
	}
	if after := w.state(); !slices.Equal(after, before) {
		t.Errorf("something was written: %q after %q", after, before)
	}
}

// Where the operator allows roles, an author needs the permissions that the API
// server would require of them: escalate for a role, bind for the role of a binding.
func TestRolesWhereTheyAreAllowed(t *testing.T) {
	const group = rbacv1.GroupName
	role := `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: "{{ INSTANCE_NAME }}"}, rules: [{apiGroups: [""], ` +
		`resources: [secrets], verbs: [get]}]}`
	binding := `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: "{{ INSTANCE_NAME }}"}, roleRef: ` +
		`{apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}, subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, ` +
		`name: eve}]}`
	bindReader := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"roles"}, ResourceNames: []string{"reader"},
		Verbs: []string{"bind"}}
	for name, tc := range map[string]struct {
		template string
		rules    []rbacv1.PolicyRule
		refused  string
	}{
		"a role, without escalate": {role, []rbacv1.PolicyRule{rule(group, "roles", everyVerb...)}, "may not escalate roles"},
		"a role, with it":          {role, []rbacv1.PolicyRule{rule(group, "roles", append(everyVerb, "escalate")...)}, ""},
		"a binding, without bind": {binding, []rbacv1.PolicyRule{rule(group, "rolebindings", everyVerb...)}, "may not bind " +
			"roles.rbac.authorization.k8s.io reader"},
		"a binding, with it": {binding, []rbacv1.PolicyRule{rule(group, "rolebindings", everyVerb...), bindReader}, ""},
		"a binding of an unknown role": {strings.Replace(binding, "name: reader", `name: "{{ INSTANCE_PROPERTIES.ROLE }}"`, 1),
			[]rbacv1.PolicyRule{rule(group, "rolebindings", everyVerb...), bindReader}, "may not bind *.rbac.authorization.k8s.io"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.options.Policy = confine.Policy{Kinds: []schema.GroupKind{{Group: group, Kind: "Role"}, {Group: group, Kind: "RoleBinding"}}}
			w.authorized(configuration(tc.template, ""), tc.refused, tc.rules)
		})
	}
}
