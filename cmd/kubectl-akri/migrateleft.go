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

// left finds the rest of Akri's chart: ServiceAccounts, what belongs to the webhook, and
// roles.
func (s *surveyor) left(ctx context.Context) error {
	accounts := s.facts.Accounts()
	if len(accounts) == 0 {
		return nil
	}
	for _, account := range accounts {
		object := migration.Object{Resource: "serviceaccounts", Namespace: account.Namespace, Name: account.Name}
		if err := s.addLeft(ctx, corev1.SchemeGroupVersion.WithKind("ServiceAccount"), object); err != nil {
			return err
		}
	}
	for _, object := range s.facts.WebhookObjects() {
		kind := map[string]string{"services": "Service", "secrets": "Secret"}[object.Resource]
		if err := s.addLeft(ctx, corev1.SchemeGroupVersion.WithKind(kind), object); err != nil {
			return err
		}
	}
	rbac := rbacv1.SchemeGroupVersion
	err := errors.Join(
		decoded(ctx, s, "ClusterRoleBindings", rbac.WithResource("clusterrolebindings"), "", func(b *rbacv1.ClusterRoleBinding) {
			s.facts.Bindings = append(s.facts.Bindings, migration.BindingOf(b.ObjectMeta, b.Subjects, b.RoleRef))
		}),
		decoded(ctx, s, "RoleBindings", rbac.WithResource("rolebindings"), "", func(b *rbacv1.RoleBinding) {
			s.facts.Bindings = append(s.facts.Bindings, migration.BindingOf(b.ObjectMeta, b.Subjects, b.RoleRef))
		}))
	for _, role := range s.facts.Roles() {
		kind := "Role"
		if role.Namespace == "" {
			kind = "ClusterRole"
		}
		err = errors.Join(err, s.addLeft(ctx, rbac.WithKind(kind), role))
	}
	return err
}

// addLeft adds an object if it exists. Only its metadata is read.
func (s *surveyor) addLeft(ctx context.Context, kind schema.GroupVersionKind, name migration.Object) error {
	var object metav1.PartialObjectMetadata
	object.SetGroupVersionKind(kind)
	exists, err := s.exists(ctx, &object, name.Namespace, name.Name)
	if exists {
		s.facts.Left = append(s.facts.Left, name)
	}
	return s.skip(kind.Kind+"s of Akri's chart", err)
}

// addUser records what runs as a ServiceAccount that may be one of Akri's chart.
func (s *surveyor) addUser(kind string, object metav1.ObjectMeta, account string) {
	if strings.HasPrefix(account, "akri-") {
		s.facts.Users = append(s.facts.Users, migration.User{
			Kind: kind, Namespace: object.Namespace, Name: object.Name, Account: account, Labels: object.Labels,
		})
	}
}
