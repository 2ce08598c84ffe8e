package main

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	configurations = schema.GroupVersionResource{Group: "akri.sh", Version: "v0", Resource: "configurations"}
	instances      = schema.GroupVersionResource{Group: "akri.sh", Version: "v0", Resource: "instances"}
	configMaps     = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	services       = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	deployments    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	namespaces     = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// children are the resources that each Instance gets one object of.
var children = []schema.GroupVersionResource{configMaps, services, deployments}

// childSelector selects them.
const childSelector = "app.kubernetes.io/managed-by=akri"

const configurationName = "bench"

// object returns an object with the given fields next to apiVersion, kind and metadata.
func object(apiVersion, kind, namespace, name string, rest map[string]any) *unstructured.Unstructured {
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

// isDevice reports whether an object has the name of a device. Those that Kubernetes'
// controllers create have others.
func isDevice(name string) bool {
	number, found := strings.CutPrefix(name, configurationName+"-")
	_, err := strconv.Atoi(number)
	return found && err == nil
}

// newInstance returns an Instance like those that an agent creates.
func newInstance(namespace, name string) *unstructured.Unstructured {
	return object("akri.sh/v0", "Instance", namespace, name, map[string]any{
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
func newConfiguration(namespace string) *unstructured.Unstructured {
	const name = "{{INSTANCE_NAME}}"
	return object("akri.sh/v0", "Configuration", namespace, configurationName, map[string]any{
		"spec": map[string]any{
			"discoveryHandler": map[string]any{"name": "none"},
			"instanceBrokerResources": []any{
				configMap("", name, "{{INSTANCE_PROPERTIES.DEVICE}}"),
				service("", name),
				deployment("", name, "{{INSTANCE_PROPERTIES.DEVICE}}", nil),
			},
		},
	})
}

func configMap(namespace, name, device string) map[string]any {
	return withoutEmptyNamespace(object("v1", "ConfigMap", namespace, name, map[string]any{
		"data": map[string]any{"device": device, "channel": "1"},
	}))
}

// servicePort is the port of each Service.
const servicePort = 80

func service(namespace, name string) map[string]any {
	return withoutEmptyNamespace(object("v1", "Service", namespace, name, map[string]any{
		"spec": map[string]any{
			"selector": map[string]any{"bench": name},
			"ports":    []any{map[string]any{"name": "http", "port": int64(servicePort), "targetPort": int64(8080)}},
		},
	}))
}

func deployment(namespace, name, device string, labels map[string]any) map[string]any {
	podLabels := map[string]any{"bench": name}
	maps.Copy(podLabels, labels)
	return withoutEmptyNamespace(object("apps/v1", "Deployment", namespace, name, map[string]any{
		"spec": map[string]any{
			"replicas": int64(0),
			"selector": map[string]any{"matchLabels": map[string]any{"bench": name}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": podLabels},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "broker", "image": "example/broker:v1",
					"env": []any{map[string]any{"name": "DEVICE", "value": device}},
				}}},
			},
		},
	}))
}

func withoutEmptyNamespace(o *unstructured.Unstructured) map[string]any {
	if o.GetNamespace() == "" {
		unstructured.RemoveNestedField(o.Object, "metadata", "namespace")
	}
	return o.Object
}

// bareObjects returns an Instance's three objects as the controller applies them,
// in the order of children.
func bareObjects(instance *unstructured.Unstructured) []*unstructured.Unstructured {
	namespace, name := instance.GetNamespace(), instance.GetName()
	device, _, _ := unstructured.NestedString(instance.Object, "spec", "brokerProperties", "DEVICE")
	labels := map[string]any{"akri.sh/configuration": configurationName, "akri.sh/instance": name}
	contents := []map[string]any{
		configMap(namespace, name, device), service(namespace, name), deployment(namespace, name, device, labels),
	}
	objects := make([]*unstructured.Unstructured, len(contents))
	for i, content := range contents {
		metadata := content["metadata"].(map[string]any)
		metadata["labels"] = map[string]any{
			"app.kubernetes.io/managed-by": "akri",
			"akri.sh/configuration":        configurationName,
			"akri.sh/instance":             name,
		}
		metadata["ownerReferences"] = []any{map[string]any{
			"apiVersion": "akri.sh/v0", "kind": "Instance", "name": name, "uid": string(instance.GetUID()), "controller": true,
		}}
		objects[i] = &unstructured.Unstructured{Object: content}
	}
	return objects
}

// bareInstanceStatus returns the status that the controller would write for the
// applied objects.
func bareInstanceStatus(instance *unstructured.Unstructured, applied []*unstructured.Unstructured) *unstructured.Unstructured {
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
	status := object("akri.sh/v0", "Instance", instance.GetNamespace(), instance.GetName(), map[string]any{
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
