package migration

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Accounts returns the ServiceAccounts of Akri's chart, by the workloads that use them.
func (f *Facts) Accounts() []Reference {
	var found []Reference
	for _, role := range []Role{RoleController, RoleAgent, RoleWebhook} {
		for _, w := range f.workloads(role) {
			for _, name := range []string{w.Pod.ServiceAccountName, cleanupAccount} {
				reference := Reference{"ServiceAccount", w.Namespace, name}
				if strings.HasPrefix(name, "akri-") && !slices.Contains(found, reference) {
					found = append(found, reference)
				}
			}
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

// OnlyOf reports whether all subjects of a binding are among accounts.
func OnlyOf(subjects []rbacv1.Subject, namespace string, accounts []Reference) bool {
	for _, subject := range subjects {
		reference := Reference{subject.Kind, subject.Namespace, subject.Name}
		if reference.Namespace == "" {
			reference.Namespace = namespace
		}
		if !slices.Contains(accounts, reference) {
			return false
		}
	}
	return len(subjects) > 0
}
