package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
)

const (
	// namespace holds everything that is measured.
	namespace = "bench"
	// bareAgent is the user agent of the bare client in the audit log, and creatorsAgent
	// that of the connections that create Instances.
	bareAgent     = "bare"
	creatorsAgent = "agents"
	// creators is the number of these connections.
	creators = 10
)

// plane is a control plane without nodes and without history: what was measured on it
// before would slow it down.
type plane struct {
	cluster     *cluster.Cluster
	dir         string
	log         *auditLog
	audit       *os.File
	admin, bare dynamic.Interface
	creators    []dynamic.Interface
	programs    []*program
}

// startPlane starts a control plane with Akri's CRDs, and returns when it is at rest.
func (b *bench) startPlane(ctx context.Context) (*plane, error) {
	dir, err := os.MkdirTemp(b.dir, "")
	if err != nil {
		return nil, fmt.Errorf("create a directory: %w", err)
	}
	path := filepath.Join(dir, "audit.log")
	c, err := cluster.Start(ctx, cluster.Config{AuditLog: path, Controllers: []string{"*"}})
	if err != nil {
		return nil, fmt.Errorf("start a control plane: %w", err)
	}
	p := &plane{cluster: c, dir: dir}
	if p.audit, err = os.Open(path); err == nil {
		p.log = &auditLog{file: bufio.NewReader(p.audit)}
		err = p.prepare(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// prepare installs the CRDs and creates the clients and the namespace.
func (p *plane) prepare(ctx context.Context) error {
	root, err := build.Root()
	if err != nil {
		return err
	}
	if _, err := p.cluster.Kubectl(ctx, "apply", "--server-side", "-k", filepath.Join(root, "config/crd")); err != nil {
		return err
	}
	_, err = p.cluster.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s",
		"crd/configurations.akri.sh", "crd/instances.akri.sh")
	if err != nil {
		return err
	}
	if p.admin, err = p.connect("bench"); err != nil {
		return err
	}
	if p.bare, err = p.connect(bareAgent); err != nil {
		return err
	}
	for range creators {
		client, err := p.connect(creatorsAgent)
		if err != nil {
			return err
		}
		p.creators = append(p.creators, client)
	}
	if _, err := p.cluster.Kubectl(ctx, "create", "namespace", namespace); err != nil {
		return err
	}
	return p.awaitRest(ctx)
}

// config returns the configuration of a client with its own connection and without a rate
// limit.
func (p *plane) config(agent string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", p.cluster.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS = -1
	config.UserAgent = agent
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	config.Dial = dialer.DialContext // clients with the same dialer would share a connection
	return config, nil
}

// connect returns a client with its own connection and without a rate limit.
func (p *plane) connect(agent string) (dynamic.Interface, error) {
	config, err := p.config(agent)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	return client, nil
}

// awaitRest waits until Kubernetes' controllers have finished with the objects so far:
// what they still do would slow down what is measured next.
func (p *plane) awaitRest(ctx context.Context) error {
	_, err := p.log.awaitQuiet(ctx, p.log.mark(), "", quietFor)
	return err
}

// close stops the programs and the control plane.
func (p *plane) close() error {
	var errs []error
	for _, running := range p.programs {
		errs = append(errs, running.end(syscall.SIGTERM))
	}
	p.audit.Close()
	return errors.Join(append(errs, p.cluster.Stop(), os.RemoveAll(p.dir))...)
}
