package supervisor

import (
	"slices"
	"testing"
)

var example = Config{
	Name:        "akri-x",
	Dir:         "/tmp/akri-x",
	Bin:         "/repo/bin/k8s",
	Nodes:       2,
	Controllers: []string{"a", "b"},
	Isolated:    true,
	HostAddress: "127.0.0.1:1234",
}

func TestPortsAreFixedOnlyInNamespaces(t *testing.T) {
	outside := example
	outside.Isolated = false
	for _, tc := range []struct {
		reason string
		flags  []string
		want   string
	}{
		{"the cluster has its own network", example.apiserverFlags("e", "443"), "--bind-address=0.0.0.0"},
		{"other machines must not reach it", outside.apiserverFlags("e", "1234"), "--bind-address=127.0.0.1"},
		{"the port is the free one that was found", outside.apiserverFlags("e", "1234"), "--secure-port=1234"},
		{"two clusters would collide", outside.schedulerFlags(), "--secure-port=0"},
		{"two controller managers would collide", outside.controllerManagerFlags(), "--secure-port=0"},
		{"the controllers are configurable", example.controllerManagerFlags(), "--controllers=a,b"},
	} {
		if !slices.Contains(tc.flags, tc.want) {
			t.Errorf("%s\n got %q\nwant %s", tc.reason, tc.flags, tc.want)
		}
	}
	if got := outside.server(); got != "https://127.0.0.1:1234" {
		t.Errorf("the server without namespaces is %s", got)
	}
}

func TestNodesHaveCertificatesForTheirAddresses(t *testing.T) {
	ids := example.identities()
	id, ok := ids["node2"]
	if !ok || id.User != "system:node:node2" || !slices.Contains(id.Hosts, NodeAddress(1)) || !slices.Contains(id.Groups, "system:nodes") {
		t.Errorf("identity of node2: %+v", id)
	}
	if _, extra := ids["node3"]; extra {
		t.Error("there is a third node")
	}
	for _, user := range []string{"kube-proxy", "coredns"} {
		if _, ok := ids[user]; !ok {
			t.Errorf("%s has no certificate", user)
		}
		if _, ok := (Config{}).identities()[user]; ok {
			t.Errorf("%s has a certificate without nodes", user)
		}
	}
	if hosts := ids["apiserver"].Hosts; !slices.Contains(hosts, "127.0.0.1") || !slices.Contains(hosts, serviceAddress) {
		t.Errorf("hosts of the API server: %q", hosts)
	}
}
