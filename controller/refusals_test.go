package controller_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
)

const (
	refusedService = `
  - apiVersion: v1
    kind: Service
    metadata: {name: refused}
    spec: {ports: [{port: 80}]}`
	refusedPod = `
  - apiVersion: v1
    kind: Pod
    metadata: {name: refused}
    spec: {SPEC containers: [{name: c, image: i, resources: {limits: {cpu: "1"}}}]}`
)

// What refuses an object is named, and once it no longer does, the object is applied.
func TestRefusals(t *testing.T) {
	quota := func(c *cluster, hard string) { // as its controller does
		c.Apply(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {services: "` + hard + `"}}}`)
		status := `{"status": {"hard": {"services": "` + hard + `"}, "used": {"services": "0"}}}`
		object := c.exists("v1", "ResourceQuota", "q")
		if err := c.Status().Patch(c.T.Context(), object, client.RawPatch(types.MergePatchType, []byte(status))); err != nil {
			c.T.Fatal(err)
		}
	}
	limit := func(c *cluster, cpu string) {
		c.Apply(`{apiVersion: v1, kind: LimitRange, metadata: {name: l}, spec: {limits: [{type: Container, max: {cpu: "` + cpu + `"}}]}}`)
	}
	level := func(c *cluster, level string) {
		c.patch(named("v1", "Namespace", "", c.Namespace), `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "`+level+`"}}}`)
	}
	missingAccount := func(request *http.Request) *http.Response {
		if request.Method != http.MethodPatch || !strings.HasSuffix(request.URL.Path, "/pods/refused") {
			return nil
		}
		return answered(request, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,`+
			`"message":"pods \"refused\" is forbidden: error looking up service account plant/broker: serviceaccount \"broker\" not found"}`)
	}
	for name, tc := range map[string]struct {
		template     string
		refuse, lift func(*cluster)
		reason       string
		says         string
	}{
		"quota": {refusedService, func(c *cluster) { quota(c, "0") }, func(c *cluster) { quota(c, "5") },
			v0.ReasonQuotaExceeded, "kubectl describe quota q -n "},
		"LimitRange": {refusedPod, func(c *cluster) { limit(c, "100m") }, func(c *cluster) { limit(c, "2") },
			v0.ReasonLimitRangeViolated, "maximum cpu usage"},
		"PodSecurity": {refusedPod, func(c *cluster) { level(c, "restricted") }, func(c *cluster) { level(c, "privileged") },
			v0.ReasonPodSecurityViolated, "kubectl describe namespace"},
		"PriorityClass": {strings.Replace(refusedPod, "SPEC", "priorityClassName: NAMESPACE,", 1), func(*cluster) {}, func(c *cluster) {
			class := `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: ` + c.Namespace + `}, value: 7}`
			c.Apply(class)
			c.T.Cleanup(func() { c.deleteCluster("scheduling.k8s.io/v1", "PriorityClass", c.Namespace) })
		}, v0.ReasonReferenceMissing, "PriorityClass"},
		// The API server of the tests does not check ServiceAccounts.
		"ServiceAccount": {refusedPod, func(c *cluster) { c.respond(missingAccount) }, func(c *cluster) { c.respond(nil) },
			v0.ReasonReferenceMissing, "kubectl create serviceaccount broker"},
		"policy": {refusedService, func(c *cluster) {
			c.Apply(strings.ReplaceAll(refusingPolicy, "NAMESPACE", c.Namespace))
			c.T.Cleanup(func() { c.deleteCluster(admissionVersion, "ValidatingAdmissionPolicy", c.Namespace) })
		},
			func(c *cluster) { c.deleteCluster(admissionVersion, "ValidatingAdmissionPolicyBinding", c.Namespace) },
			v0.ReasonPolicyDenied, "no ports, please"},
	} {
		t.Run(name, func(t *testing.T) {
			madeUp := name == "ServiceAccount"
			if !madeUp { // the controllers of other tests would not be refused
				t.Parallel()
			}
			c := newCluster(t)
			tc.refuse(c)
			template := strings.ReplaceAll(strings.ReplaceAll(tc.template, "NAMESPACE", c.Namespace), "SPEC", "")
			if !madeUp {
				c.refuses(template) // the API server takes a while to see what refuses it
			}
			c.Apply(configWith("cfg", template))
			instance := c.Instance("cfg", "cfg-1", nil)
			c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, tc.reason, "instanceBrokerResources[0]", tc.says)
			if message := instance.Status.Conditions[0].Message; strings.Contains(message, "ClusterRole") {
				t.Errorf("the advice is about permissions: %s", message)
			}
			c.settled()
			tc.lift(c)
			lifted := time.Now()
			c.condition(instance, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
			t.Logf("applied %v after the refusal was lifted", time.Since(lifted)) // TestRetry has the bound
		})
	}
}

// refuses waits until the API server refuses the object of a template.
func (c *cluster) refuses(template string) {
	c.T.Helper()
	var objects []map[string]any
	if err := yaml.Unmarshal([]byte(template), &objects); err != nil {
		c.T.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: objects[0]}
	object.SetNamespace(c.Namespace)
	c.Eventually("a refusal", func() string {
		if err := c.Create(c.T.Context(), object.DeepCopy(), client.DryRunAll); err == nil {
			return "it is accepted"
		}
		return ""
	})
}

const (
	admissionVersion = "admissionregistration.k8s.io/v1"
	refusingPolicy   = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAMESPACE}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [services]}]
  validations: [{expression: "false", message: "no ports, please", reason: Forbidden}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAMESPACE}
spec: {policyName: NAMESPACE, validationActions: [Deny]}`
)

// One edit by somebody while the repair is refused ten times is no contention.
func TestRefusedRepairsAreNoContention(t *testing.T) {
	c := newCluster(t)
	c.Apply(configWith("cfg", `
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: refused}
    data: {k: ours}`))
	instance := c.Instance("cfg", "cfg-1", nil)
	c.ready(instance)
	refusals := make(chan struct{}, 100)
	c.respond(func(request *http.Request) *http.Response {
		if request.Method != http.MethodPatch || !strings.HasSuffix(request.URL.Path, "/configmaps/refused") {
			return nil
		}
		refusals <- struct{}{}
		const answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,` +
			`"message":"admission webhook \"x\" denied the request: no"}`
		return answered(request, http.StatusForbidden, answer)
	})
	c.edit("v1 ConfigMap refused", update("data.k", "theirs").by("kubectl-patch"))
	for i := range 11 {
		// What wakes the controller sooner than the back-off.
		c.edit("v1 ConfigMap refused", patch(types.MergePatchType, fmt.Sprintf(`{"metadata": {"annotations": {"n": "%d"}}}`, i)))
		<-refusals
	}
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonWebhookDenied, `admission webhook "x" denies it`)
	c.respond(nil)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
}
