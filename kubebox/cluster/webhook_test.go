package cluster_test

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/cluster/internal/pki"
	"akri.sh/akri/kubebox/clustertest"
)

const webhookBehindService = `
apiVersion: v1
kind: Service
metadata: {name: guard}
spec: {ports: [{port: 443, targetPort: %[1]s}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: guard-1, labels: {kubernetes.io/service-name: guard}}
addressType: IPv4
ports: [{port: %[1]s, protocol: TCP}]
endpoints: [{addresses: [10.99.0.1], conditions: {ready: true}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: guard}
webhooks:
- name: guard.akri.sh
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]
  clientConfig:
    service: {name: guard, namespace: default, path: /validate}
    caBundle: %[2]s
`

// TestWebhookIsReachedThroughItsService shows how a test serves a webhook. The API server
// is not on a node with a kube-proxy, but resolves a Service's endpoints itself.
func TestWebhookIsReachedThroughItsService(t *testing.T) {
	c := clustertest.Start(t, cluster.Config{})
	authority, err := pki.NewAuthority("webhook", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(pki.Identity{User: "guard", Hosts: []string{"guard.default.svc"}})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := c.Listen(t.Context(), "", "tcp", "10.99.0.1:0")
	if err != nil {
		if !isolated(c) {
			t.Skip("without namespaces, a webhook has only a loopback address")
		}
		t.Fatal(err)
	}
	server := &http.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var review map[string]any
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			review["response"] = map[string]any{
				"uid":     review["request"].(map[string]any)["uid"],
				"allowed": false,
				"status":  map[string]any{"message": "denied by guard"},
			}
			json.NewEncoder(w).Encode(review)
		}),
	}
	go server.ServeTLS(listener, "", "")
	t.Cleanup(func() { server.Close() })

	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	manifest := fmt.Sprintf(webhookBehindService, port, base64.StdEncoding.EncodeToString(authority.Cert))
	if _, err := c.KubectlInput(t.Context(), []byte(manifest), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	var refusal error
	eventually(t, 20*time.Second, "the webhook is called", func() bool {
		_, refusal = c.Kubectl(t.Context(), "create", "secret", "generic", "s", "--dry-run=server")
		return refusal != nil && strings.Contains(refusal.Error(), "denied by guard")
	})
}

// isolated reports whether the cluster has its own network.
func isolated(*cluster.Cluster) bool { return cluster.Probe() == nil }
