package webhook

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
)

// handlerWith adds discovery properties to the handler of a Configuration.
func handlerWith(text, properties string) string {
	const without = `discoveryDetails: "descriptions: [foo0]"`
	return strings.Replace(text, without, without+", discoveryProperties: ["+properties+"]", 1)
}

// secretProperty is a discovery property from the Secret cam-login.
const secretProperty = `{name: PASSWORD, valueFrom: {secretKeyRef: {name: cam-login, key: k, NAMESPACE}}}`

// A Configuration lends its author nothing: not what its conditions reveal of
// objects, not the Secrets and ConfigMaps that agents read for it, not a handler that
// an operator restricts.
func TestAuthorizeWhatAConfigurationUses(t *testing.T) {
	const (
		condition = `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, annotations: {akri.sh/ready-when: "self.data.k == 'a'"}}}`
		taken     = `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, annotations: {akri.sh/on-conflict: adopt}}}`
		skipped   = `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, annotations: {akri.sh/on-conflict: skip}}}`
		failing   = `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, annotations: {akri.sh/on-conflict: fail}}}`
		inMap     = `{name: P, valueFrom: {configMapKeyRef: {name: cam-map, key: k, optional: true}}}`
	)
	owned := strings.Replace(secretProperty, ", NAMESPACE", "", 1)
	write := rule("", "configmaps", everyVerb...)
	read := func(resource, name string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: []string{name}, Verbs: []string{"get"}}
	}
	use := func(name string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{v0.Domain}, Resources: []string{"discoveryhandlers"}, ResourceNames: []string{name},
			Verbs: []string{"use"}}
	}
	delegate := rule(v0.Domain, "configurations", verbDelegate)
	for name, tc := range map[string]struct {
		group, properties string
		rules             []rbacv1.PolicyRule
		requireUse        bool
		refused           string
	}{
		"ready-when": {group: condition, rules: []rbacv1.PolicyRule{write},
			refused: "spec.configurationBrokerResources[0].metadata.annotations[akri.sh/ready-when]: " +
				`user "ann" may not get configmaps theirs`},
		"ready-when, permitted": {group: condition, rules: []rbacv1.PolicyRule{write, read("configmaps", "theirs")}},
		"adopt": {group: taken, rules: []rbacv1.PolicyRule{write},
			refused: `metadata.annotations[akri.sh/on-conflict]: user "ann" may not get configmaps theirs`},
		"adopt, permitted": {group: taken, rules: []rbacv1.PolicyRule{write, read("configmaps", "theirs")}},
		"skip":             {group: skipped, rules: []rbacv1.PolicyRule{write}, refused: "may not get configmaps theirs"},
		"fail":             {group: failing, rules: []rbacv1.PolicyRule{write}},
		"a Secret": {properties: owned,
			refused: `spec.discoveryHandler.discoveryProperties[0].valueFrom.secretKeyRef: user "ann" may not get secrets cam-login`},
		"a Secret, with permission for another": {properties: owned, rules: []rbacv1.PolicyRule{read("secrets", "other")},
			refused: "may not get secrets cam-login"},
		"a Secret, permitted": {properties: owned, rules: []rbacv1.PolicyRule{read("secrets", "cam-login")}},
		"a Secret of another namespace": {properties: strings.Replace(secretProperty, "NAMESPACE", "namespace: kube-system", 1),
			rules:   []rbacv1.PolicyRule{read("secrets", "cam-login")},
			refused: "may not get secrets cam-login in namespace kube-system"},
		"a ConfigMap": {properties: owned + ", " + inMap, rules: []rbacv1.PolicyRule{read("secrets", "cam-login")},
			refused: "discoveryProperties[1].valueFrom.configMapKeyRef: user \"ann\" may not get configmaps cam-map"},
		"a ConfigMap, permitted": {properties: inMap, rules: []rbacv1.PolicyRule{read("configmaps", "cam-map")}},
		"a handler":              {},
		"a restricted handler": {requireUse: true,
			refused: `spec.discoveryHandler.name: user "ann" may not use discoveryhandlers.akri.sh debugEcho`},
		"a restricted handler, with permission for another": {requireUse: true, rules: []rbacv1.PolicyRule{use("udev")}, refused: "may not use"},
		"a restricted handler, permitted":                   {requireUse: true, rules: []rbacv1.PolicyRule{use("debugEcho")}},
		"all of them, with delegate": {requireUse: true, group: condition, properties: owned,
			rules: []rbacv1.PolicyRule{delegate}},
		"another namespace, with delegate": {properties: strings.Replace(secretProperty, "NAMESPACE", "namespace: kube-system", 1),
			rules: []rbacv1.PolicyRule{delegate}, refused: "may not get secrets cam-login in namespace kube-system"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.options.RequireUse = tc.requireUse
			text := configuration("", tc.group)
			if tc.properties != "" {
				text = handlerWith(text, tc.properties)
			}
			w.authorized(text, tc.refused, tc.rules)
		})
	}
}

// An author who changes the address that a handler connects to receives the password
// there. So the permission is required for each change of the spec, not only of the
// author who named the Secret.
func TestEditingWhereASecretGoes(t *testing.T) {
	w := newWorld(t)
	w.guard()
	w.grant("eve", configurations)
	text := handlerWith(configuration("", ""), strings.Replace(secretProperty, ", NAMESPACE", "", 1))
	if err := w.as("").apply(text); err != nil {
		t.Fatal(err)
	}
	eve := w.as("eve")
	expect(t, eve.apply(strings.Replace(text, "[foo0]", "[foo1]", 1)), "may not get secrets cam-login")
	expect(t, eve.apply(strings.Replace(text, "{name: cam}", "{name: cam, labels: {mine: \"1\"}}", 1)), "") // not in the spec
	expect(t, eve.apply(configuration("", "")), "")                                                         // no Secret any more
}

// A ServiceAccount does not read with the controller's permissions either.
func TestReadingThroughAnAccount(t *testing.T) {
	const template = `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, annotations: {akri.sh/ready-when: "self.data.k == 'a'"}}}`
	w := newWorld(t)
	w.guard()
	w.grant("ann", configurations, rule("", "serviceaccounts", "impersonate"))
	text := configuration("", template) + "  serviceAccountName: maker\n"
	accounts := "system:serviceaccount:" + w.Namespace + ":"
	w.grant(accounts+"maker", rule("", "configmaps", everyVerb...))
	w.grant(accounts+"reader", rule("", "configmaps", append(everyVerb, "get")...))
	expect(t, w.as("ann").apply(text), "metadata.annotations[akri.sh/ready-when]: ServiceAccount maker may not get configmaps theirs")
	expect(t, w.as("ann").apply(strings.Replace(text, "maker", "reader", 1)), "")
}

// Where operators allow cluster-scoped objects, delegation in one namespace does not
// reach them, and neither does a permission for the kind in one namespace before the
// kind is known.
func TestDelegationEndsWithItsNamespace(t *testing.T) {
	w := newWorld(t)
	w.options.Policy = confine.Policy{ClusterScoped: true, OtherNamespaces: true}
	w.guard()
	w.grant("ann", configurations, rule(v0.Domain, "configurations", verbDelegate))
	w.grant("bob", configurations, rule("new.example", "things", everyVerb...))
	class := `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: "{{ INSTANCE_NAME }}"}, value: 1}`
	elsewhere := `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}", namespace: kube-system}}`
	unknown := `{apiVersion: new.example/v1, kind: Thing, metadata: {name: "{{ INSTANCE_NAME }}"}}`
	expect(t, w.as("ann").apply(configuration(aConfigMap, "")), "")
	expect(t, w.as("ann").apply(configuration(class, "")), "may not create, delete, patch priorityclasses.scheduling.k8s.io, and")
	expect(t, w.as("ann").apply(configuration(elsewhere, "")), "may not create, delete, patch configmaps in namespace kube-system")
	expect(t, w.as("ann").apply(configuration(unknown, "")), "may not create, delete, patch things.new.example, and")
	expect(t, w.as("bob").apply(configuration(unknown, "")), "may not create, delete, patch things.new.example, and")
	w.grantEverywhere("applier", rule(v0.Domain, "configurations", "get", "create", "patch", "update", verbDelegate))
	w.Eventually("the verb in all namespaces stands for them", func() string {
		for _, template := range []string{class, elsewhere, unknown} {
			if err := w.as("applier").apply(configuration(template, "")); err != nil {
				return err.Error()
			}
		}
		return ""
	})
}

// Reviews are limited: a Configuration that requires too many is denied.
func TestReviewsAreLimited(t *testing.T) {
	w := newWorld(t)
	w.guard()
	w.grant("ann", configurations, rule("", "configmaps", append(everyVerb, "get")...))
	template := func(list string, i int) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s-%d, annotations: {akri.sh/on-conflict: skip}}}`, list, i)
	}
	var instance, group []string
	for i := range 64 {
		instance, group = append(instance, template("a", i)), append(group, template("b", i))
	}
	expect(t, w.as("ann").apply(configuration(strings.Join(instance[:20], ","), strings.Join(group[:20], ","))), "")
	expect(t, w.as("ann").apply(configuration(strings.Join(instance, ","), strings.Join(group, ","))),
		"it requires 512 different permissions, which is more than the 400 that are checked")
}

// Nothing is rendered for users who may not create the objects.
func TestNothingIsRenderedWithoutPermission(t *testing.T) {
	w := newWorld(t)
	w.guard()
	w.grant("ann", configurations)
	text := configuration(`{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}"}, `+
		`data: {k: "{{ fail \"rendered\" }}"}}`, "")
	expect(t, w.as("").apply(text), "rendered")
	err := w.as("ann").apply(text)
	expect(t, err, "may not create, delete, patch configmaps")
	if strings.Contains(err.Error(), "rendered") {
		t.Errorf("it was rendered: %v", err)
	}
}
