package controller_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// With spec.serviceAccountName, objects are created with the account's permissions
// only, although the controller itself may do anything here.
func TestServiceAccount(t *testing.T) {
	c := start(t)
	c.apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cfg}
spec:
  discoveryHandler: {name: debugEcho}
  serviceAccountName: cameras
  instanceBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}"}
  - apiVersion: v1
    kind: Service
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec: {ports: [{port: 80}]}
`)
	instance := c.instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonForbidden,
		"instanceBrokerResources[0]", c.namespace+"/cameras", "configmaps", "bind it to a Role")
	c.apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: cameras}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, create, patch, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: cameras}
roleRef: {apiGroup: ` + rbacv1.GroupName + `, kind: Role, name: cameras}
subjects: [{kind: ServiceAccount, name: cameras, namespace: ` + c.namespace + `}]
`)
	c.exists("v1", "ConfigMap", "cfg-1") // it heals by itself
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonForbidden, "instanceBrokerResources[1]", "services")
	if c.object("v1", "Service", "cfg-1") != nil {
		t.Error("a Service exists, but the account may not create Services")
	}
}
