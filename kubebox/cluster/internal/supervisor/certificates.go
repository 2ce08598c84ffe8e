package supervisor

import (
	"os"
	"time"

	"akri.sh/akri/kubebox/cluster/internal/node"
	"akri.sh/akri/kubebox/cluster/internal/pki"
)

// writeCertificates writes the pki directory and the administrator's kubeconfigs, one
// for the machine and one for use inside.
func (c Config) writeCertificates() error {
	if err := os.MkdirAll(PKIDir(c.Dir), 0o700); err != nil {
		return err
	}
	authority, err := pki.NewAuthority(c.Name, time.Now())
	if err != nil {
		return err
	}
	if err := c.writePair("ca", authority.Pair); err != nil {
		return err
	}
	for name, id := range c.identities() {
		pair, err := authority.Issue(id)
		if err != nil {
			return err
		}
		if err := c.writePair(name, pair); err != nil {
			return err
		}
		config := pki.Kubeconfig(c.Name, c.server(), authority.Cert, pair)
		if err := writePrivate(c.pki(name+".kubeconfig"), config); err != nil {
			return err
		}
		if name != "admin" {
			continue
		}
		if err := writePrivate(InsideKubeconfig(c.Dir), config); err != nil {
			return err
		}
		outside := pki.Kubeconfig(c.Name, "https://"+c.HostAddress, authority.Cert, pair)
		if err := writePrivate(HostKubeconfig(c.Dir), outside); err != nil {
			return err
		}
	}
	private, public, err := pki.SigningKey()
	if err != nil {
		return err
	}
	if err := writePrivate(c.pki("sa.key"), private); err != nil {
		return err
	}
	return writePrivate(c.pki("sa.pub"), public)
}

// identities returns the identities that get certificates, by file name.
func (c Config) identities() map[string]pki.Identity {
	all := map[string]pki.Identity{
		"apiserver": {User: "kube-apiserver", Hosts: []string{
			"127.0.0.1", "localhost", bridgeAddress, serviceAddress,
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		}},
		"apiserver-kubelet-client": {User: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}},
		"admin":                    {User: "admin", Groups: []string{"system:masters"}},
		"controller-manager":       {User: "system:kube-controller-manager"},
		"scheduler":                {User: "system:kube-scheduler"},
	}
	if c.Nodes > 0 {
		all[node.KubeProxy] = pki.Identity{User: "system:kube-proxy"}
		all[coredns] = pki.Identity{User: dnsUser}
	}
	for i := range c.Nodes {
		name := NodeName(i)
		all[name] = pki.Identity{
			User:   "system:node:" + name,
			Groups: []string{"system:nodes"},
			Hosts:  []string{name, NodeAddress(i)},
		}
	}
	return all
}

func (c Config) writePair(name string, p pki.Pair) error {
	if err := writePrivate(c.pki(name+".crt"), p.Cert); err != nil {
		return err
	}
	return writePrivate(c.pki(name+".key"), p.Key)
}

func writePrivate(path string, content []byte) error { return os.WriteFile(path, content, 0o600) }
