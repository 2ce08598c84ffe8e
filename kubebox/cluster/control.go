package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"akri.sh/akri/kubebox/cluster/internal/node"
	"akri.sh/akri/kubebox/cluster/internal/process"
	"akri.sh/akri/kubebox/cluster/internal/supervisor"
	"akri.sh/akri/kubebox/cluster/internal/wire"
)

// Action is what can be done to a component.
type Action string

// The actions. Stop lets the component end in its own way; Kill does not. Pause
// and Resume are for programs, not for nodes.
const (
	Run     Action = "start"
	Stop    Action = "stop"
	Restart Action = "restart"
	Kill    Action = "kill"
	Pause   Action = "pause"
	Resume  Action = "resume"
)

// Status tells what a component is doing, and how it failed if it did. Its Pid
// is the one inside the cluster.
type Status = process.Status

// Do performs an action on a component. Components are called
//
//	etcd, kube-apiserver, kube-controller-manager, kube-scheduler
//	node1                              the whole node: Kill is a power failure
//	node1/kubelet, node1/containerd
//
// Do returns when a stopped component is gone, and as soon as a started one
// runs; see WaitReady.
func (c *Cluster) Do(ctx context.Context, action Action, component string) error {
	socket, name := supervisor.ControlSocket(c.dir), component
	if n, program, ok := strings.Cut(component, "/"); ok {
		var err error
		if socket, err = c.socket(n); err != nil {
			return err
		}
		name = program
	}
	_, _, err := wire.Call(ctx, socket, wire.Request{Op: wire.Control, Name: name, Action: string(action)})
	if err != nil {
		return fmt.Errorf("%s %s: %w", action, component, err)
	}
	return nil
}

// Components reports on all components. Those of a node that is down are left
// out.
func (c *Cluster) Components(ctx context.Context) ([]Status, error) {
	top, _, err := wire.Call(ctx, supervisor.ControlSocket(c.dir), wire.Request{Op: wire.Report})
	if err != nil {
		return nil, err
	}
	var all []Status
	for _, s := range top.Components {
		all = append(all, s)
		if s.State != process.Running || !slices.Contains(c.state.Nodes, s.Name) {
			continue
		}
		socket, err := c.socket(s.Name)
		if err != nil {
			return nil, err
		}
		below, _, err := wire.Call(ctx, socket, wire.Request{Op: wire.Report})
		if err != nil {
			continue // it is booting, or has just ended
		}
		for _, b := range below.Components {
			b.Name = s.Name + "/" + b.Name
			all = append(all, b)
		}
	}
	return all, nil
}

// socket is where a node, or with no name the control plane, is controlled.
func (c *Cluster) socket(name string) (string, error) {
	if name == "" {
		return supervisor.ControlSocket(c.dir), nil
	}
	if !slices.Contains(c.state.Nodes, name) {
		return "", fmt.Errorf("there is no node %q in this cluster: there are %q", name, c.state.Nodes)
	}
	return node.ControlSocket(supervisor.NodeDir(c.dir, name)), nil
}
