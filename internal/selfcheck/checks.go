// Package selfcheck has the checks of an installation that akri-controller check, which
// helm test runs in the cluster, and kubectl akri check have in common.
//
// Always: an error that is a [finding.Mistake], or one of the API server. Never: a change in
// the cluster; what is created is a dry run.
package selfcheck

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
)

// Name is the name of the Configurations that checks create, and of their devices.
const Name = "akri-check"

// ErrNotAdmitted means that no webhook judges Configurations.
var ErrNotAdmitted error = finding.Mistake{
	Cause: "an invalid Configuration was accepted", Hint: "is the ValidatingWebhookConfiguration registered?",
}

// Kinds returns an error if the API server does not serve one of Akri's kinds.
func Kinds(kinds discovery.ServerResourcesInterface) error {
	const remedy = "install the CustomResourceDefinitions"
	list, err := kinds.ServerResourcesForGroupVersion(v0.GroupVersion.String())
	if err != nil {
		return finding.Mistake{Cause: fmt.Sprintf("%s is not served: %v", v0.GroupVersion, err), Hint: remedy}
	}
	for _, name := range []string{"configurations", "instances"} {
		if !slices.ContainsFunc(list.APIResources, func(resource metav1.APIResource) bool { return resource.Name == name }) {
			return finding.Mistake{Cause: fmt.Sprintf("%s.%s is not served", name, v0.GroupVersion.Group), Hint: remedy}
		}
	}
	return nil
}

// Webhook returns an error if Configurations in the namespace are not judged, or not as they
// should be.
func Webhook(ctx context.Context, api client.Writer, namespace string) error {
	err := api.Create(ctx, Configuration(namespace, "descriptions: 1"), client.DryRunAll)
	if err == nil {
		return ErrNotAdmitted
	}
	if !strings.Contains(err.Error(), "discoveryDetails") {
		return fmt.Errorf("an invalid Configuration was refused for another reason: %w", err)
	}
	if err := api.Create(ctx, Configuration(namespace, `descriptions: ["`+Name+`"]`), client.DryRunAll); err != nil {
		return fmt.Errorf("a valid Configuration was refused: %w", err)
	}
	return nil
}

// Configuration returns a Configuration for the handler debugEcho.
func Configuration(namespace, details string) *v0.Configuration {
	configuration := &v0.Configuration{}
	configuration.Namespace, configuration.Name = namespace, Name
	configuration.Spec.DiscoveryHandler = v0.DiscoveryHandler{Name: "debugEcho", DiscoveryDetails: details}
	return configuration
}
