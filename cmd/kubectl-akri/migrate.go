package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/migration"
)

func newMigrate(streams cli.Streams) *cobra.Command {
	command := &cobra.Command{
		Use:   "migrate",
		Short: "Move a cluster from the original Akri to this one",
		Long: `Move a cluster from the original Akri to this one. Nothing that uses a device is
restarted. See docs/migrate-from-akri.md for all that changes, and for the way back.

  check  says what will happen to each object, and what to settle before
  plan   prints the steps in their order, as a script for this cluster
  pull   pulls the new images on all nodes, before anything is stopped
  clean  removes what the original Akri has left, after the move`,
		Args: cobra.NoArgs,
	}
	command.AddCommand(newMigrateCheck(streams), newMigratePlan(streams), newMigratePull(streams), newMigrateClean(streams))
	return command
}

type migrateCheckOptions struct {
	access
	output string
}

func newMigrateCheck(streams cli.Streams) *cobra.Command {
	var o migrateCheckOptions
	command := &cobra.Command{
		Use:   "check",
		Short: "Say what a move from the original Akri will do to each object",
		Long: `Say what a move from the original Akri will do to each Configuration, Instance, slot,
Pod, Service and Job of the cluster, and what has to be settled before. Nothing is
written.

You need permission to list Configurations and Instances of all namespaces. What else
you may not read is named and left out; of Secrets, only the metadata is read, and
Helm's record of Akri.

The exit code is 0 if nothing blocks the move, 1 if something does, and 2 if the
cluster cannot be read.`,
		Example: `  kubectl akri migrate check
  kubectl akri migrate check -o json | jq '.findings[] | select(.severity == "blocks")'`,
		Args: cobra.NoArgs,
	}
	command.RunE = func(command *cobra.Command, _ []string) error {
		if o.output != "" && o.output != "json" && o.output != "yaml" {
			return cli.Usage(command, fmt.Errorf("-o %s: use json or yaml", o.output))
		}
		return o.run(command.Context(), streams)
	}
	o.addClusterFlags(command)
	command.Flags().StringVarP(&o.output, "output", "o", "", "output `format`: json or yaml")
	return command
}

func (o *migrateCheckOptions) run(ctx context.Context, streams cli.Streams) error {
	_, facts, err := o.survey(ctx, streams)
	if err != nil {
		return err
	}
	report := migration.Check(facts)
	if o.output != "" {
		err = printAs(streams, o.output, report)
	} else {
		err = report.Print(streams.Out)
	}
	if n := report.Count(migration.Blocks); err == nil && n > 0 {
		return fmt.Errorf("the move is blocked: see the first %d of the findings", n)
	}
	return err
}

// survey connects and reads the facts of a migration.
func (a *access) survey(ctx context.Context, streams cli.Streams) (*cluster, *migration.Facts, error) {
	api, err := a.connect(streams.Err, nil)
	if err != nil {
		return nil, nil, cli.Failed(err)
	}
	facts, err := api.survey(ctx)
	if err != nil {
		return nil, nil, cli.Failed(err)
	}
	return api, facts, nil
}

type migratePlanOptions struct {
	access
	installer string
	source    string
	set       []string
	replace   bool
}

func newMigratePlan(streams cli.Streams) *cobra.Command {
	var o migratePlanOptions
	command := &cobra.Command{
		Use:   "plan",
		Short: "Print the steps of a move from the original Akri, as a script",
		Long: `Print the steps of a move from the original Akri in their order, as a script with the
names of this cluster. Nothing is written, and nothing is run. The script uses the
current context of the kubeconfig, and stops if that is another cluster.

The script never runs helm uninstall: a hook of Akri's chart would delete all
Configurations. It makes Helm forget the release instead, and stops the controller
and the agents in a way that can be undone until the last step. Before, it pulls the
new images on all nodes: so the chart must be one whose images are in a registry.`,
		Example: `  kubectl akri migrate plan --source bin/akri-1.2.3.tgz > move.sh
  kubectl akri migrate plan --source bin/akri-1.2.3.tgz --set 'image.pullSecrets[0].name=registry'
  kubectl akri migrate plan --install kubectl --source my-kustomization`,
		Args: cobra.NoArgs,
	}
	command.RunE = func(command *cobra.Command, _ []string) error { return o.run(command, streams) }
	o.addClusterFlags(command)
	flags := command.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", agentNamespace, "`namespace` to install in")
	flags.StringVar(&o.installer, "install", string(migration.Helm), "how to install: helm or kubectl")
	flags.StringVar(&o.source, "source", "",
		"the chart, as helm takes it (required); for kubectl, the `directory` of your kustomization, or that contains config (default .)")
	flags.StringArrayVar(&o.set, "set", nil, "`KEY=VALUE` for helm: a value of the chart; can be repeated")
	flags.BoolVar(&o.replace, "replace-handlers", false, "replace Akri's handlers by those of this Akri (default: keep them)")
	return command
}

func (o *migratePlanOptions) run(command *cobra.Command, streams cli.Streams) error {
	options := migration.PlanOptions{
		Installer: migration.Installer(o.installer), Namespace: o.namespace, Source: o.source, Set: o.set, Replace: o.replace,
	}
	switch options.Installer {
	case migration.Helm:
		if o.source == "" {
			return cli.Usage(command, errors.New("--source: name the chart: "+
				"the archive that make push chart REGISTRY=HOST/PATH has written, or oci://HOST/PATH/akri"))
		}
	case migration.Kubectl:
		if o.namespace != agentNamespace {
			return cli.Usage(command, fmt.Errorf("-n %s: config/default installs in %s; use --install helm", o.namespace, agentNamespace))
		}
		if len(o.set) > 0 {
			return cli.Usage(command, errors.New("--set: it is for --install helm"))
		}
		options.Source = cmp.Or(o.source, ".")
		_, err := os.Stat(filepath.Join(options.Source, "kustomization.yaml"))
		options.Kustomization = err == nil
	default:
		return cli.Usage(command, fmt.Errorf("--install %s: use helm or kubectl", o.installer))
	}
	_, facts, err := o.survey(command.Context(), streams)
	if err != nil {
		return err
	}
	if len(facts.Unread) > 0 {
		return cli.Failed(fmt.Errorf("the plan would be incomplete: %s: %s", facts.Unread[0].What, facts.Unread[0].Why))
	}
	if !migration.Installed(facts) {
		return errors.New("no controller and no agent of the original Akri was found: there is nothing to move")
	}
	if n := migration.Check(facts).Count(migration.Blocks); n > 0 {
		fmt.Fprintf(streams.Err, "note: %d findings block the move, and the script stops at them: see kubectl akri migrate check\n", n)
	}
	return migration.PrintPlan(streams.Out, facts, options)
}
