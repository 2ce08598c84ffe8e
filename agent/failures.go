package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/text"
)

const (
	maxMessageBytes = 1024 // the schema limits the characters
	maxHandlerBytes = 512
)

// failures collects this node's failures of one Configuration for its status.
// Messages about the same handler are joined.
type failures struct {
	node string
	list []v0.DiscoveryFailure
}

func (f *failures) add(handler, message string) {
	handler = text.Truncate(handler, maxHandlerBytes)
	for i := range f.list {
		if f.list[i].Handler == handler {
			f.list[i].Message = text.Truncate(f.list[i].Message+"; "+message, maxMessageBytes)
			return
		}
	}
	f.list = append(f.list, v0.DiscoveryFailure{Node: f.node, Handler: handler, Message: text.Truncate(message, maxMessageBytes)})
}

// sorted returns the failures in the order in which the agent writes them.
func (f *failures) sorted() []v0.DiscoveryFailure {
	slices.SortFunc(f.list, func(a, b v0.DiscoveryFailure) int { return cmp.Compare(a.Handler, b.Handler) })
	return f.list
}

// reporter writes a node's failures to the status of Configurations.
type reporter struct {
	client  dynamic.Interface
	manager string
}

// report applies the failures unless the status already shows them.
func (r reporter) report(ctx context.Context, configuration *v0.Configuration, wanted []v0.DiscoveryFailure) error {
	have := slices.SortedFunc(slices.Values(configuration.Status.DiscoveryFailures), func(a, b v0.DiscoveryFailure) int {
		return cmp.Compare(a.Handler, b.Handler)
	})
	if slices.Equal(have, wanted) {
		return nil
	}
	entries := make([]any, 0, len(wanted))
	for _, failure := range wanted {
		entries = append(entries, map[string]any{"node": failure.Node, "handler": failure.Handler, "message": failure.Message})
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v0.GroupVersion.String(), "kind": v0.ConfigurationKind.Kind,
		"metadata": map[string]any{"namespace": configuration.Namespace, "name": configuration.Name, "uid": string(configuration.UID)},
		"status":   map[string]any{"discoveryFailures": entries},
	}}
	_, err := r.client.Resource(v0.ConfigurationResource).Namespace(configuration.Namespace).
		ApplyStatus(ctx, configuration.Name, object, metav1.ApplyOptions{FieldManager: r.manager, Force: true})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write the status of Configuration %s: %w", keyOf(configuration), err)
	}
	return nil
}
