package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"akri.sh/akri/kubebox/cluster/internal/node"
	"akri.sh/akri/kubebox/cluster/internal/process"
	"akri.sh/akri/kubebox/cluster/internal/readiness"
	"akri.sh/akri/kubebox/cluster/internal/wire"
)

// prepareServices sets up everything that lets Pods reach Services, without starting it.
// Without nft, the cluster resolves names, but does not route Services.
func (s *Supervisor) prepareServices() error {
	if err := s.checkNFT(); err == nil {
		s.routed = true
	} else {
		_ = s.reports.Encode(Report{Progress: "WARNING: there is no kube-proxy, so the addresses of Services lead nowhere: " + err.Error()})
	}
	var err error
	if s.dns, err = s.newDNS(); err != nil {
		return err
	}
	s.operator.Components = append(s.operator.Components, s.dns)
	return nil
}

// checkNFT returns an error unless this machine can run kube-proxy, which programs the
// kernel through nft.
func (s *Supervisor) checkNFT() error {
	path, err := exec.LookPath("nft")
	if err != nil {
		return errors.New("nft is missing: run apt-get install nftables, or on Fedora dnf install nftables, and start the cluster again")
	}
	output := filepath.Join(LogDir(s.config.Dir), "nft.log")
	log, err := os.Create(output)
	if err != nil {
		return err
	}
	defer log.Close()
	p, err := s.table.Start(process.Spec{
		Path:  path,
		Args:  []string{"--check", "add", "table", "ip", "kube-proxy"},
		Env:   s.env,
		Files: []*os.File{nil, log, log},
	})
	if err != nil {
		return err
	}
	if status := p.Status(); status.Signaled() || status.ExitStatus() != 0 {
		return fmt.Errorf("%s does not work with this kernel: %s", path, process.Tail(output, 5))
	}
	return nil
}

// startServices creates the objects that lead to the API server and to the cluster's DNS
// server, and starts the latter as soon as it may read what it serves.
func (s *Supervisor) startServices(ctx context.Context, client *readiness.Client) error {
	for _, o := range append(dnsObjects(), apiserverEndpoint()) {
		if err := client.Create(ctx, o.path, o.object); err != nil {
			return err
		}
	}
	return s.dns.Start()
}

// apiserverEndpoint returns the endpoint of the Service kubernetes. It stays while the
// API server is restarted.
func apiserverEndpoint() created {
	type object = map[string]any
	return created{"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", object{
		"metadata":    object{"name": "kubernetes", "labels": object{"kubernetes.io/service-name": "kubernetes"}},
		"addressType": "IPv4",
		"ports":       []object{{"name": "https", "port": 443, "protocol": "TCP"}},
		"endpoints":   []object{{"addresses": []string{bridgeAddress}, "conditions": object{"ready": true}}},
	}}
}

// awaitServices waits until the DNS server has read the Services, and every node routes
// to it: a connection to its Service shows that kube-proxy has programmed the node.
func (s *Supervisor) awaitServices(ctx context.Context) error {
	dial := new(net.Dialer).DialContext
	if err := readiness.HTTP(ctx, "the cluster's DNS", "http://"+dnsReadyAddress+"/ready", dial); err != nil {
		return err
	}
	if !s.routed {
		return nil
	}
	var all sync.WaitGroup
	failures := make([]error, len(s.machines))
	for i, m := range s.machines {
		all.Go(func() { failures[i] = readiness.Port(ctx, "kube-proxy of "+m.Name, DNSService, dialFrom(m.config.Dir)) })
	}
	all.Wait()
	return errors.Join(failures...)
}

// dialFrom returns a function that connects from inside the node at dir.
func dialFrom(dir string) readiness.Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		_, files, err := wire.Call(ctx, node.ControlSocket(dir), wire.Request{Op: wire.Dial, Network: network, Address: address})
		if err != nil {
			return nil, err
		}
		defer files[0].Close()
		return net.FileConn(files[0])
	}
}
