package controller

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
)

// account returns the ServiceAccount that acts for a Configuration and its
// Instances; empty for the controller itself.
func account(configuration *v0.Configuration) types.NamespacedName {
	if configuration == nil || configuration.Spec.ServiceAccountName == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Spec.ServiceAccountName}
}

// deletingAccount returns the ServiceAccount that deletes the objects of an
// Instance, whose Configuration may no longer exist.
func deletingAccount(instance *v0.Instance, configuration *v0.Configuration) types.NamespacedName {
	name, found := instance.Annotations[v0.AnnotationServiceAccount]
	if configuration != nil || !found {
		return account(configuration)
	}
	return types.NamespacedName{Namespace: instance.Namespace, Name: name}
}

// accountChanged reports whether an Instance has a finalizer, but another
// ServiceAccount is recorded with it than the one that acts for it now.
func accountChanged(instance *v0.Instance, configuration *v0.Configuration) bool {
	return slices.Contains(instance.Finalizers, v0.FinalizerCleanup) &&
		instance.Annotations[v0.AnnotationServiceAccount] != account(configuration).Name
}

// ignoreGone returns nil for a parent that no longer exists: its deletion is an event
// of its own.
func ignoreGone(err error) error {
	if errors.Is(err, apply.ErrGone) {
		return nil
	}
	return err
}
