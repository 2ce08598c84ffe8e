// Package original writes to the API server what an agent of the original Akri (0.13)
// writes: for tests of taking over from it and of running next to it.
//
// Always: the requests, field managers and fields of Akri's own source
// (agent/src/util/discovery_configuration_controller.rs,
// agent/src/plugin_manager/device_plugin_instance_controller.rs, shared/src/k8s/api.rs).
// All are server-side applies that are not forced: an error is what Akri would get.
// Never: anything that this project's agents write.
package original

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	v0 "akri.sh/akri/api/v0"
)

// Agent is the agent of a node, in one namespace.
type Agent struct {
	Client          dynamic.Interface
	Namespace, Node string
}

// Device is what Akri writes about a device.
type Device struct {
	Name       string // of the Instance
	Properties map[string]any
	Capacity   int64
	Shared     bool
}

// Finalize adds the node's finalizer to a Configuration or an Instance.
func (a Agent) Finalize(ctx context.Context, kind schema.GroupVersionKind, resource schema.GroupVersionResource, name string) error {
	return a.finalizers(ctx, kind, resource, name, map[string]any{"finalizers": []any{a.Node}})
}

// Unfinalize removes the node's finalizer.
func (a Agent) Unfinalize(ctx context.Context, kind schema.GroupVersionKind, resource schema.GroupVersionResource, name string) error {
	return a.finalizers(ctx, kind, resource, name, map[string]any{})
}

func (a Agent) finalizers(
	ctx context.Context, kind schema.GroupVersionKind, resource schema.GroupVersionResource, name string, metadata map[string]any,
) error {
	return a.apply(ctx, resource, name, a.Node+"-fin", map[string]any{
		"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": metadata,
	})
}

// Publish creates the Instance of a device, or joins it. Akri repeats it every ten
// minutes, and at each message of the handler.
func (a Agent) Publish(ctx context.Context, configuration metav1.Object, device Device) error {
	err := a.apply(ctx, v0.InstanceResource, device.Name, a.Node, map[string]any{
		"metadata": map[string]any{"ownerReferences": []any{map[string]any{
			"apiVersion": v0.GroupVersion.String(), "kind": v0.ConfigurationKind.Kind,
			"name": configuration.GetName(), "uid": string(configuration.GetUID()), "controller": true,
		}}},
		"spec": a.spec(configuration.GetName(), device, a.Node),
	})
	if err != nil {
		return err
	}
	return a.Finalize(ctx, v0.InstanceKind, v0.InstanceResource, device.Name)
}

// Leave removes the node from an Instance that another node sees, too.
func (a Agent) Leave(ctx context.Context, configuration string, device Device) error {
	return a.apply(ctx, v0.InstanceResource, device.Name, a.Node, map[string]any{"spec": a.spec(configuration, device)})
}

func (a Agent) spec(configuration string, device Device, nodes ...any) map[string]any {
	return map[string]any{
		"configurationName": configuration, "cdiName": v0.CDIName(configuration, device.Name), "capacity": device.Capacity,
		"brokerProperties": device.Properties, "shared": device.Shared, "deviceUsage": map[string]any{}, "nodes": append([]any{}, nodes...),
	}
}

// Own claims slots, and frees those that the node had and that are not among them.
func (a Agent) Own(ctx context.Context, instance string, owners map[string]any) error {
	return a.apply(ctx, v0.InstanceResource, instance, "dp-"+a.Node, map[string]any{"spec": map[string]any{"deviceUsage": owners}})
}

func (a Agent) apply(ctx context.Context, resource schema.GroupVersionResource, name, manager string, content map[string]any) error {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v0.GroupVersion.String(), "kind": v0.InstanceKind.Kind, "metadata": map[string]any{},
	}}
	maps.Copy(object.Object, content)
	object.SetName(name)
	_, err := a.Client.Resource(resource).Namespace(a.Namespace).Apply(ctx, name, object, metav1.ApplyOptions{FieldManager: manager})
	return err
}
