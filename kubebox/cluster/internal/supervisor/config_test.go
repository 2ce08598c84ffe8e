package supervisor

import (
	"slices"
	"strings"
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

func TestPortsAreFixedInsideAndFreeOutside(t *testing.T) {
	outside := example
	outside.Isolated = false
	for _, tc := range []struct {
		reason string
		flags  []string
		want   string
	}{
		{"the network is the cluster's own", example.apiserverFlags("e", "443"), "--bind-address=0.0.0.0"},
		{"nobody else may reach it", outside.apiserverFlags("e", "1234"), "--bind-address=127.0.0.1"},
		{"the port is the one that was free", outside.apiserverFlags("e", "1234"), "--secure-port=1234"},
		{"two clusters would collide", outside.schedulerFlags(), "--secure-port=0"},
		{"they would collide here, too", outside.controllerManagerFlags(), "--secure-port=0"},
		{"controllers are a choice", example.controllerManagerFlags(), "--controllers=a,b"},
	} {
		if !slices.Contains(tc.flags, tc.want) {
			t.Errorf("%s\n got %q\nwant %s", tc.reason, tc.flags, tc.want)
		}
	}
	if got := outside.server(); got != "https://127.0.0.1:1234" {
		t.Errorf("the server outside is %s", got)
	}
}

func TestAuditLogIsAChoice(t *testing.T) {
	with := example
	with.AuditLog = "/tmp/audit.log"
	if flags := with.apiserverFlags("e", "443"); !slices.Contains(flags, "--audit-log-path=/tmp/audit.log") {
		t.Errorf("got %q", flags)
	}
	if flags := example.apiserverFlags("e", "443"); strings.Contains(strings.Join(flags, " "), "audit") {
		t.Errorf("got %q", flags)
	}
}

func TestNodesHaveCertificatesForTheirAddresses(t *testing.T) {
	ids := example.identities()
	id, ok := ids["node2"]
	if !ok || id.User != "system:node:node2" || !slices.Contains(id.Hosts, NodeAddress(1)) || !slices.Contains(id.Groups, "system:nodes") {
		t.Errorf("node2 is %+v", id)
	}
	if _, extra := ids["node3"]; extra {
		t.Error("there is a third node")
	}
	if hosts := ids["apiserver"].Hosts; !slices.Contains(hosts, "127.0.0.1") || !slices.Contains(hosts, serviceAddress) {
		t.Errorf("the API server is known as %q", hosts)
	}
}
