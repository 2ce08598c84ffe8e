package migration

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Binding is a ClusterRoleBinding or a RoleBinding.
type Binding struct {
	Object
	Role     Object
	Subjects []Reference
}

// BindingOf describes a binding, which has a namespace unless it is a ClusterRoleBinding.
func BindingOf(object metav1.ObjectMeta, subjects []rbacv1.Subject, role rbacv1.RoleRef) Binding {
	resource := func(name string) string {
		return schema.GroupResource{Group: rbacv1.GroupName, Resource: name}.String()
	}
	b := Binding{
		Object: Object{resource("clusterrolebindings"), object.Namespace, object.Name},
		Role:   Object{resource(strings.ToLower(role.Kind) + "s"), object.Namespace, role.Name},
	}
	if object.Namespace != "" {
		b.Resource = resource("rolebindings")
	}
	if role.Kind == "ClusterRole" {
		b.Role.Namespace = ""
	}
	for _, subject := range subjects {
		b.Subjects = append(b.Subjects, Reference{subject.Kind, subject.Namespace, subject.Name})
	}
	return b
}

// User is a Pod or a workload that runs as a ServiceAccount.
type User struct {
	Kind, Namespace, Name string
	Account               string
	Labels                map[string]string
}

// stopped returns the workloads that end with the move.
func (f *Facts) stopped() []Workload {
	return slices.Concat(f.workloads(RoleController), f.workloads(RoleAgent), f.workloads(RoleWebhook))
}

// Accounts returns the ServiceAccounts of Akri's chart, by the workloads that use them.
func (f *Facts) Accounts() []Reference {
	var found []Reference
	for _, w := range f.stopped() {
		for _, name := range []string{w.Pod.ServiceAccountName, cleanupAccount} {
			reference := Reference{"ServiceAccount", w.Namespace, name}
			if strings.HasPrefix(name, "akri-") && !slices.Contains(found, reference) {
				found = append(found, reference)
			}
		}
	}
	return found
}

// Roles returns the roles of Akri's chart, by the bindings to its ServiceAccounts alone.
func (f *Facts) Roles() []Object {
	accounts := f.Accounts()
	var found []Object
	for _, b := range f.Bindings {
		if b.onlyOf(accounts) && strings.HasPrefix(b.Role.Name, "akri-") && !slices.Contains(found, b.Role) {
			found = append(found, b.Role)
		}
	}
	return found
}

// WebhookObjects returns what Akri's webhook uses: its Service, and the Secret with its
// certificate.
func (f *Facts) WebhookObjects() []Object {
	var found []Object
	for _, w := range f.workloads(RoleWebhook) {
		found = append(found, Object{"services", w.Namespace, w.Name}, Object{"secrets", w.Namespace, w.Name})
	}
	return found
}

// onlyOf reports whether all subjects of the binding are among accounts.
func (b Binding) onlyOf(accounts []Reference) bool {
	other := func(subject Reference) bool { return !slices.Contains(accounts, subject) }
	return len(b.Subjects) > 0 && !slices.ContainsFunc(b.Subjects, other)
}

// chart returns what becomes of the further objects of Akri's chart. What somebody else
// uses is kept. Roles come before their bindings: if a run is interrupted, the next one
// finds the roles through them.
func (f *Facts) chart() []Action {
	var removed []Reference
	var ofAccounts []Action
	for _, account := range f.Accounts() {
		object := Object{"serviceaccounts", account.Namespace, account.Name}
		if user := f.user(account); user != "" {
			ofAccounts = append(ofAccounts, Action{Keep: true, Object: object, Why: user + " runs as it"})
			continue
		}
		removed = append(removed, account)
		if slices.Contains(f.Left, object) {
			ofAccounts = append(ofAccounts, Action{Object: object, Why: partOfChart})
		}
	}
	actions := append(f.roles(removed), ofAccounts...)
	for _, object := range f.WebhookObjects() {
		if slices.Contains(f.Left, object) {
			actions = append(actions, Action{Object: object, Why: partOfChart})
		}
	}
	return actions
}

const partOfChart = "part of Akri's chart"

// roles returns what becomes of the roles of Akri's chart and their bindings, if accounts
// are removed.
func (f *Facts) roles(accounts []Reference) []Action {
	var actions []Action
	all := f.Accounts()
	for _, role := range f.Roles() {
		if !slices.Contains(f.Left, role) {
			continue
		}
		action := Action{Object: role, Why: partOfChart}
		for _, b := range f.Bindings {
			if b.Role == role && !b.onlyOf(accounts) {
				action.Keep, action.Why = true, b.String()+" binds it, and stays"
			}
		}
		actions = append(actions, action)
	}
	for _, b := range f.Bindings {
		isAkris := func(subject Reference) bool { return slices.Contains(all, subject) }
		switch {
		case b.onlyOf(accounts):
			actions = append(actions, Action{Object: b.Object, Why: partOfChart})
		case slices.ContainsFunc(b.Subjects, isAkris):
			i := slices.IndexFunc(b.Subjects, func(subject Reference) bool { return !slices.Contains(accounts, subject) })
			actions = append(actions, Action{Keep: true, Object: b.Object, Why: "it has the subject " + b.Subjects[i].String() + ", which stays"})
		}
	}
	return actions
}

// user returns what runs as an account and does not end with the move, or "".
func (f *Facts) user(account Reference) string {
	for _, user := range f.Users {
		ends := func(w Workload) bool {
			return w.Namespace == user.Namespace && (w.Kind == user.Kind && w.Name == user.Name || user.Kind == "Pod" && w.selects(user.Labels))
		}
		if user.Namespace == account.Namespace && user.Account == account.Name && !slices.ContainsFunc(f.stopped(), ends) {
			return fmt.Sprintf("%s %s/%s", user.Kind, user.Namespace, user.Name)
		}
	}
	return ""
}

// selects reports whether the workload selects Pods with labels.
func (w Workload) selects(labels map[string]string) bool {
	for key, value := range w.Selector {
		if labels[key] != value {
			return false
		}
	}
	return len(w.Selector) > 0
}
