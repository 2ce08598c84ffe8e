package supervisor

import (
	"fmt"
	"os"
	"path/filepath"

	"akri.sh/akri/kubebox/cluster/internal/process"
)

// coredns is the program of the cluster's DNS server and the name of its component.
const coredns = "coredns"

// dnsUser is the server's user name, and that of its ClusterRole.
const dnsUser = "system:coredns"

// clusterDomain is the parent of the names of all Services.
const clusterDomain = "cluster.local"

// The addresses of the DNS server. It listens next to the API server, on the bridge, so
// that it is ready as early as the nodes and does not depend on any of them.
const (
	dnsAddress      = "10.96.0.10" // of the Service kube-dns
	dnsReadyAddress = "127.0.0.1:8181"
)

// DNSService is the address and port of the Service kube-dns as seen from a node.
const DNSService = dnsAddress + ":53"

// corefile renders the server's configuration. There is no other network, hence no
// resolver to forward to: names outside the cluster do not exist. Nothing is cached, as
// the server has everything in memory.
func (c Config) corefile() string {
	return fmt.Sprintf(`%s in-addr.arpa ip6.arpa {
	errors
	ready %s
	kubernetes {
		kubeconfig %s
		pods insecure
	}
}
. {
	errors
	template ANY ANY {
		rcode NXDOMAIN
	}
}
`, clusterDomain, dnsReadyAddress, c.pki(coredns+".kubeconfig"))
}

// newDNS returns the component of the DNS server.
func (s *Supervisor) newDNS() (*process.Component, error) {
	file := filepath.Join(s.config.Dir, "Corefile")
	if err := os.WriteFile(file, []byte(s.config.corefile()), 0o644); err != nil {
		return nil, err
	}
	return s.component(coredns, []string{"-conf", file}), nil
}

// created is an object to create, at the path of its collection.
type created struct {
	path   string
	object map[string]any
}

// dnsObjects returns the objects of the DNS server: its rights, as in other clusters, and
// the Service kube-dns. The Service has no selector, because the server is not a Pod.
func dnsObjects() []created {
	type object = map[string]any
	const (
		rbac    = "rbac.authorization.k8s.io"
		role    = dnsUser
		service = "kube-dns"
	)
	verbs := []string{"list", "watch"}
	names := object{"k8s-app": service, "kubernetes.io/name": "CoreDNS"}
	port := func(name, protocol string) object { return object{"name": name, "port": 53, "protocol": protocol} }
	ports := []object{port("dns", "UDP"), port("dns-tcp", "TCP")}
	return []created{
		{"/apis/" + rbac + "/v1/clusterroles", object{
			"metadata": object{"name": role},
			"rules": []object{
				{"apiGroups": []string{""}, "resources": []string{"services", "pods", "namespaces"}, "verbs": verbs},
				{"apiGroups": []string{"discovery.k8s.io"}, "resources": []string{"endpointslices"}, "verbs": verbs},
			},
		}},
		{"/apis/" + rbac + "/v1/clusterrolebindings", object{
			"metadata": object{"name": role},
			"roleRef":  object{"apiGroup": rbac, "kind": "ClusterRole", "name": role},
			"subjects": []object{{"apiGroup": rbac, "kind": "User", "name": role}},
		}},
		{"/api/v1/namespaces/kube-system/services", object{
			"metadata": object{"name": service, "labels": names},
			"spec":     object{"clusterIP": dnsAddress, "ports": ports},
		}},
		{"/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", object{
			"metadata":    object{"name": service, "labels": object{"kubernetes.io/service-name": service}},
			"addressType": "IPv4",
			"ports":       ports,
			"endpoints":   []object{{"addresses": []string{bridgeAddress}, "conditions": object{"ready": true}}},
		}},
	}
}
