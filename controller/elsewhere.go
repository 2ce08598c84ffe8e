package controller

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
)

// account is the ServiceAccount that acts for a Configuration, and for its
// Instances. What is left when the Configuration has gone is removed by the
// controller itself.
func account(configuration *v0.Configuration) types.NamespacedName {
	if configuration == nil || configuration.Spec.ServiceAccountName == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Spec.ServiceAccountName}
}

func groupName(configuration *v0.Configuration) types.NamespacedName {
	return types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Name}
}

// announce writes down what is about to be made where garbage collection does not
// reach, with our finalizer on the parent, so that a crash leaks nothing.
func (o *objects) announce(ctx context.Context, parent ownership.Parent, write func() error) error {
	if err := o.clients.Own().Finalize(ctx, parent); err != nil {
		return err
	}
	return write()
}

// release takes our finalizer off a parent that has nothing left that needs it.
func (o *objects) release(ctx context.Context, parent ownership.Parent, finalizers []string, inventory []v0.ResourceStatus) error {
	if !slices.Contains(finalizers, v0.FinalizerElsewhere) || plan.Reaches(parent, inventory) {
		return nil
	}
	return o.clients.Own().Unfinalize(ctx, parent)
}
