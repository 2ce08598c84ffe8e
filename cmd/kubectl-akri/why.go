package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/view"
)

type whyOptions struct {
	access
}

func newWhy(streams cli.Streams) *cobra.Command {
	var o whyOptions
	command := &cobra.Command{
		Use:   "why INSTANCE",
		Short: "Show why a device is not in use, and what to do about it",
		Example: `  kubectl akri why akri-debug-echo-8120fe
  kubectl akri why -n plant door-cam-da9268`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.completion(&v0.InstanceList{}),
		RunE: func(command *cobra.Command, args []string) error {
			return o.run(command.Context(), streams, args[0])
		},
	}
	o.addFlags(command)
	return command
}

func (o *whyOptions) run(ctx context.Context, streams cli.Streams, name string) error {
	namespace, err := o.selectedNamespace()
	if err != nil {
		return err
	}
	api, err := o.connect(streams.Err, nil)
	if err != nil {
		return err
	}
	facts, err := api.facts(ctx, namespace, name)
	if err != nil {
		return err
	}
	if !facts.AllPods {
		fmt.Fprintf(streams.Err, "note: no permission to list Pods in other namespaces; one of them may use the device\n")
	}
	return view.Why(streams.Out, facts)
}

// facts collects what is known about an Instance. Apart from the Instance and its
// Configuration, objects that the user may not read are left out.
func (c *cluster) facts(ctx context.Context, namespace, name string) (*view.Facts, error) {
	facts := &view.Facts{Now: time.Now(), AllPods: true}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &facts.Instance)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("no Instance %q in %s: its device has not been found, or the name is wrong; "+
			"kubectl akri tree lists the Instances", name, where(namespace))
	}
	if err != nil {
		return nil, fmt.Errorf("read Instance %s: %w", name, err)
	}
	var configuration v0.Configuration
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: facts.Instance.Spec.ConfigurationName}, &configuration)
	if err == nil {
		facts.Configuration = &configuration
	} else if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read Configuration %s: %w", facts.Instance.Spec.ConfigurationName, err)
	}
	if err := c.podsOf(ctx, facts); err != nil {
		return nil, err
	}
	if err := c.nodesOf(ctx, facts); err != nil {
		return nil, err
	}
	return facts, c.eventsOf(ctx, facts)
}

// podsOf adds the Pods that request the device, in all namespaces if permitted.
func (c *cluster) podsOf(ctx context.Context, facts *view.Facts) error {
	var pods corev1.PodList
	err := c.List(ctx, &pods)
	if apierrors.IsForbidden(err) {
		facts.AllPods = false
		err = c.List(ctx, &pods, client.InNamespace(facts.Instance.Namespace))
	}
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("list Pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if view.Requests(pod, v0.ResourceName(facts.Instance.Name)) ||
			view.Requests(pod, v0.ResourceName(facts.Instance.Spec.ConfigurationName)) {
			facts.Pods = append(facts.Pods, *pod)
		}
	}
	return nil
}

// nodesOf adds the nodes that see the device.
func (c *cluster) nodesOf(ctx context.Context, facts *view.Facts) error {
	nodes := map[string]corev1.Node{}
	for _, name := range facts.Instance.Spec.Nodes {
		var node corev1.Node
		err := c.Get(ctx, client.ObjectKey{Name: name}, &node)
		switch {
		case apierrors.IsForbidden(err):
			return nil // facts.Nodes stays nil: unknown
		case err == nil:
			nodes[name] = node
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("read Node %s: %w", name, err)
		}
	}
	facts.Nodes = nodes
	return nil
}

// eventsOf adds the Events of the Instance, of the objects created for it, and of
// the Pods that request it.
func (c *cluster) eventsOf(ctx context.Context, facts *view.Facts) error {
	about := map[types.UID]bool{facts.Instance.UID: true}
	namespaces := map[string]bool{facts.Instance.Namespace: true}
	for _, resource := range facts.Instance.Status.Resources {
		about[types.UID(resource.UID)] = true
	}
	for i := range facts.Pods {
		about[facts.Pods[i].UID] = true
		namespaces[facts.Pods[i].Namespace] = true
	}
	for namespace := range namespaces {
		var events corev1.EventList
		err := c.List(ctx, &events, client.InNamespace(namespace))
		if apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("list Events: %w", err)
		}
		for _, event := range events.Items {
			if event.InvolvedObject.UID != "" && about[event.InvolvedObject.UID] {
				facts.Events = append(facts.Events, event)
			}
		}
	}
	return nil
}
