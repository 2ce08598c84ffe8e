package main

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	configurations = schema.GroupVersionResource{Group: "akri.sh", Version: "v0", Resource: "configurations"}
	instances      = schema.GroupVersionResource{Group: "akri.sh", Version: "v0", Resource: "instances"}
	configMaps     = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	services       = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	deployments    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// children are the resources that each Instance gets one object of.
var children = []schema.GroupVersionResource{configMaps, services, deployments}

// childSelector selects them.
const childSelector = "app.kubernetes.io/managed-by=akri"

const configurationName = "bench"

// object returns an object with the given fields next to apiVersion, kind and metadata.
func object(apiVersion, kind, name string, rest map[string]any) *unstructured.Unstructured {
	content := map[string]any{
		"apiVersion": apiVersion,
		"kind":       kind,
		"metadata":   map[string]any{"name": name, "namespace": namespace},
	}
	maps.Copy(content, rest)
	return &unstructured.Unstructured{Object: content}
}

// deviceName returns the name of the Instance with the given number.
func deviceName(number int) string { return fmt.Sprintf("%s-%06d", configurationName, number) }

// newInstance returns an Instance like those that an agent creates.
func newInstance(name string) *unstructured.Unstructured {
	return object("akri.sh/v0", "Instance", name, map[string]any{
		"spec": map[string]any{
			"configurationName": configurationName,
			"cdiName":           "akri.sh/bench=" + name,
			"capacity":          int64(1),
			"nodes":             []any{"node1"},
			"brokerProperties":  map[string]any{"DEVICE": "/dev/" + name},
		},
	})
}

// newConfiguration returns a Configuration with a ConfigMap, a Service and a
// Deployment without Pods for each device.
func newConfiguration() *unstructured.Unstructured {
	var templates []any
	for _, template := range objectsOf("{{INSTANCE_NAME}}", "{{INSTANCE_PROPERTIES.DEVICE}}") {
		template.SetNamespace("")
		templates = append(templates, template.Object)
	}
	return object("akri.sh/v0", "Configuration", configurationName, map[string]any{
		"spec": map[string]any{
			"discoveryHandler":        map[string]any{"name": "none"},
			"instanceBrokerResources": templates,
		},
	})
}

// objectsOf returns the objects of an Instance, in the order of children.
func objectsOf(name, device string) []*unstructured.Unstructured {
	labels := map[string]any{"bench": name}
	return []*unstructured.Unstructured{
		object("v1", "ConfigMap", name, map[string]any{
			"data": map[string]any{"device": device, "channel": "1"},
		}),
		object("v1", "Service", name, map[string]any{
			"spec": map[string]any{
				"selector": labels,
				"ports":    []any{map[string]any{"name": "http", "port": int64(80), "targetPort": int64(8080)}},
			},
		}),
		object("apps/v1", "Deployment", name, map[string]any{
			"spec": map[string]any{
				"replicas": int64(0),
				"selector": map[string]any{"matchLabels": labels},
				"template": map[string]any{
					"metadata": map[string]any{"labels": maps.Clone(labels)},
					"spec": map[string]any{"containers": []any{map[string]any{
						"name": "broker", "image": "example/broker:v1",
						"env": []any{map[string]any{"name": "DEVICE", "value": device}},
					}}},
				},
			},
		}),
	}
}

// bareObjects returns an Instance's three objects as the controller applies them: with its
// labels, also those of the Deployment's Pods, and with an owner.
func bareObjects(instance *unstructured.Unstructured) []*unstructured.Unstructured {
	name := instance.GetName()
	device, _, _ := unstructured.NestedString(instance.Object, "spec", "brokerProperties", "DEVICE")
	objects := objectsOf(name, device)
	for _, o := range objects {
		metadata := o.Object["metadata"].(map[string]any)
		metadata["labels"] = map[string]any{
			"app.kubernetes.io/managed-by": "akri",
			"akri.sh/configuration":        configurationName,
			"akri.sh/instance":             name,
		}
		metadata["ownerReferences"] = []any{map[string]any{
			"apiVersion": "akri.sh/v0", "kind": "Instance", "name": name, "uid": string(instance.GetUID()), "controller": true,
		}}
	}
	podLabels, _, _ := unstructured.NestedFieldNoCopy(objects[2].Object, "spec", "template", "metadata", "labels")
	podLabels.(map[string]any)["akri.sh/configuration"] = configurationName
	podLabels.(map[string]any)["akri.sh/instance"] = name
	return objects
}

// bareStatus returns the status that the controller would write for the applied objects.
func bareStatus(instance *unstructured.Unstructured, applied []*unstructured.Unstructured) *unstructured.Unstructured {
	resources := make([]any, len(applied))
	for i, o := range applied {
		kind := o.GroupVersionKind()
		entry := map[string]any{
			"version": kind.Version, "kind": kind.Kind, "namespace": o.GetNamespace(), "name": o.GetName(), "uid": string(o.GetUID()),
			"template": int64(i), "hash": "0123456789abcdef", "managedFieldsHash": "0123456789abcdef", "ready": kind.Kind != "Deployment",
		}
		if kind.Group != "" {
			entry["group"] = kind.Group
		}
		resources[i] = entry
	}
	condition := func(kind, status, reason, message string) any {
		return map[string]any{
			"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-02T03:04:05Z",
		}
	}
	status := object("akri.sh/v0", "Instance", instance.GetName(), map[string]any{
		"status": map[string]any{
			"resources": resources,
			"conditions": []any{
				condition("Applied", "True", "Applied", "all objects are applied"),
				condition("Ready", "False", "Progressing", "Deployment "+instance.GetName()+": its generation has not been observed"),
			},
		},
	})
	status.SetUID(instance.GetUID())
	return status
}
