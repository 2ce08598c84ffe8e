package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/internal/finding"
)

func newMigrate(streams cli.Streams, a access) *cobra.Command {
	command := &cobra.Command{
		Use:   "migrate",
		Short: "Check a cluster before a move from the original Akri",
		Long: `Check a cluster before a move from the original Akri to this one. The commands of the
move, and of the way back, are in docs/migrate-from-akri.md.`,
	}
	command.AddCommand(newMigrateCheck(streams, a))
	return command
}

func newMigrateCheck(streams cli.Streams, a access) *cobra.Command {
	var output cli.Output
	command := &cobra.Command{
		Use:   "check",
		Short: "Say what a move from the original Akri will do to each object",
		Long: `Say what a move from the original Akri will do to each Configuration, Instance, slot,
Pod, Service and Job of the cluster, and what you must solve before. Nothing is
written.

You need permission to list Configurations and Instances of all namespaces. The command
names and leaves out what else you may not read. It reads only the metadata of Secrets.

The exit code is 0 if nothing blocks the move, 1 if something does, and 2 if the
cluster cannot be read.`,
		Example: `  kubectl akri migrate check
  kubectl akri migrate check -o json | jq '.findings[] | select(.level == "error")'`,
		Args: cobra.NoArgs,
	}
	command.RunE = func(command *cobra.Command, _ []string) error {
		return a.checkMigration(command.Context(), streams, output)
	}
	output.AddFlag(command)
	a.set.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "namespace" { // it reads all namespaces
			command.Flags().AddFlag(flag)
		}
	})
	return command
}

func (a access) checkMigration(ctx context.Context, streams cli.Streams, output cli.Output) error {
	api, err := a.connect(streams.Err, nil)
	if err != nil {
		return cli.Failed(err)
	}
	report, err := api.checkMigration(ctx)
	if err != nil {
		return cli.Failed(err)
	}
	err = output.Print(streams.Out, report, report.print)
	if n := report.count(finding.Error); err == nil && n > 0 {
		return fmt.Errorf("the move is blocked: see the first %d of the findings", n)
	}
	return err
}

// migration checks a cluster with the original Akri. What the user may not read is
// recorded in the report.
type migration struct {
	*cluster
	report migrationReport
	// configurations are not decoded, because the original Akri stores what this one
	// would reject.
	configurations []unstructured.Unstructured
	instances      []v0.Instance
	ready          map[string]bool // whether each node is; nil if they could not be listed
}

// checkMigration returns what a move does to the cluster. Only Configurations and Instances
// must be readable.
func (c *cluster) checkMigration(ctx context.Context) (*migrationReport, error) {
	m := &migration{cluster: c}
	m.report = migrationReport{
		Installation: installation{Workloads: []string{}, Handlers: []string{}}, Findings: []finding.Finding{}, Objects: []objectOutcome{},
	}
	list, err := c.dynamic.Resource(v0.GroupVersion.WithResource("configurations")).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errors.New("the cluster has no Configurations of Akri: there is nothing to move")
	}
	if err != nil {
		return nil, fmt.Errorf("list Configurations of all namespaces: %w", err)
	}
	m.configurations = list.Items
	var instances v0.InstanceList
	if err := c.List(ctx, &instances); err != nil {
		return nil, fmt.Errorf("list Instances of all namespaces: %w", err)
	}
	m.instances = instances.Items
	for _, check := range []func(context.Context) error{m.workloads, m.webhooks, m.nodes, m.objects} {
		if err := check(ctx); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(m.report.Findings, func(a, b finding.Finding) int { return cmp.Compare(a.Level, b.Level) })
	return &m.report, nil
}

// skip records that something could not be read for lack of permission. Other errors
// are returned.
func (m *migration) skip(what string, err error) error {
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("read %s: %w", what, err)
	}
	if err != nil && !slices.Contains(m.report.Unread, what) {
		m.report.Unread = append(m.report.Unread, what)
	}
	return nil
}

// each lists the objects of a resource in all namespaces as a type, and calls keep for each.
func each[T any](ctx context.Context, m *migration, resource schema.GroupVersionResource, selector string, keep func(*T)) error {
	list, err := m.dynamic.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return m.skip(resource.Resource, err)
	}
	for _, item := range list.Items {
		object, err := decode[T](item.Object)
		if err != nil {
			return fmt.Errorf("read %s %s/%s: %w", resource.Resource, item.GetNamespace(), item.GetName(), err)
		}
		keep(object)
	}
	return nil
}
