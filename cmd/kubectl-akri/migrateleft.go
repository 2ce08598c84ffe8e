package main

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"akri.sh/akri/cmd/kubectl-akri/migration"
)

// exists reports whether an object exists.
func (s *surveyor) exists(ctx context.Context, object client.Object, namespace, name string) (bool, error) {
	err := s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// left finds the rest of Akri's chart: ServiceAccounts, what is bound to nothing else,
// and what belongs to the webhook.
func (s *surveyor) left(ctx context.Context) error {
	accounts := s.facts.Accounts()
	for _, account := range accounts {
		object := migration.Object{Resource: "serviceaccounts", Namespace: account.Namespace, Name: account.Name}
		if err := s.addLeft(ctx, "ServiceAccount", object); err != nil {
			return err
		}
	}
	for _, object := range s.facts.WebhookObjects() {
		kind := map[string]string{"services": "Service", "secrets": "Secret"}[object.Resource]
		if err := s.addLeft(ctx, kind, object); err != nil {
			return err
		}
	}
	if len(accounts) == 0 {
		return nil
	}
	rbac := rbacv1.SchemeGroupVersion
	return errors.Join(
		decoded(ctx, s, "ClusterRoleBindings", rbac.WithResource("clusterrolebindings"), "", func(b *rbacv1.ClusterRoleBinding) {
			s.binding("clusterrolebindings", b.ObjectMeta, b.Subjects, b.RoleRef, accounts)
		}),
		decoded(ctx, s, "RoleBindings", rbac.WithResource("rolebindings"), "", func(b *rbacv1.RoleBinding) {
			s.binding("rolebindings", b.ObjectMeta, b.Subjects, b.RoleRef, accounts)
		}))
}

// addLeft adds an object if it exists. Only its metadata is read.
func (s *surveyor) addLeft(ctx context.Context, kind string, name migration.Object) error {
	var object metav1.PartialObjectMetadata
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	exists, err := s.exists(ctx, &object, name.Namespace, name.Name)
	if exists {
		s.facts.Left = append(s.facts.Left, name)
	}
	return s.skip(kind+"s of Akri's chart", err)
}

// binding adds a binding to Akri's ServiceAccounts alone, and the role if it is one of
// the chart's.
func (s *surveyor) binding(
	resource string, object metav1.ObjectMeta, subjects []rbacv1.Subject, role rbacv1.RoleRef, accounts []migration.Reference,
) {
	if !migration.OnlyOf(subjects, object.Namespace, accounts) {
		return
	}
	group := schema.GroupResource{Group: rbacv1.GroupName, Resource: resource}
	s.facts.Left = append(s.facts.Left, migration.Object{Resource: group.String(), Namespace: object.Namespace, Name: object.Name})
	if strings.HasPrefix(role.Name, "akri-") {
		group.Resource = strings.ToLower(role.Kind) + "s"
		namespace := object.Namespace
		if role.Kind == "ClusterRole" {
			namespace = ""
		}
		s.facts.Left = append(s.facts.Left, migration.Object{Resource: group.String(), Namespace: namespace, Name: role.Name})
	}
}
