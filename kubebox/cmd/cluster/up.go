package main

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"akri.sh/akri/kubebox/cluster"
)

func newUp(dir *string) *cobra.Command {
	config := cluster.Config{Nodes: 1, Detached: true}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster, which runs until the down command stops it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			began := time.Now()
			config.Dir = *dir
			config.Progress = func(text string) { fmt.Fprintln(cmd.ErrOrStderr(), text) }
			if missing, ok := errors.AsType[*cluster.NoNodesError](cluster.Probe()); ok && config.Nodes > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "WARNING: %v\nStarting a control plane without nodes: no Pods will run.\n", missing)
				config.Nodes = 0
			}
			c, err := cluster.Start(cmd.Context(), config)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "cluster with %d nodes up after %.1fs; for kubectl:\n", len(c.Nodes()), time.Since(began).Seconds())
			fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s\n", c.Kubeconfig())
			return nil
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&config.Nodes, "nodes", config.Nodes, "number of nodes")
	flags.StringVar(&config.Bin, "bin", "", "directory of the executables (default bin/k8s in the repository)")
	flags.StringVar(&config.AuditLog, "audit-log", "", "file for the API server's audit log")
	flags.StringArrayVar(&config.Images, "image", nil,
		"image archive for the nodes, in addition to those of the build command; may be repeated")
	flags.StringSliceVar(&config.Controllers, "controllers", nil,
		"controllers of kube-controller-manager, * for all (default: those that workloads need)")
	return cmd
}

func newDown(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster and remove everything it created, even after a crash",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			began := time.Now()
			err := cluster.Down(*dir)
			if none, ok := errors.AsType[*cluster.NoClusterError](err); ok {
				fmt.Fprintln(cmd.ErrOrStderr(), none)
				return nil
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "cluster in %s stopped after %.1fs; its processes, cgroups and files are removed\n",
				*dir, time.Since(began).Seconds())
			return nil
		},
	}
}

func newStatus(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the state of the cluster's components",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Open(*dir)
			if err != nil {
				return err
			}
			components, err := c.Components(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s at %s, kubeconfig %s\n", c.Name(), c.Server(), c.Kubeconfig())
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, s := range components {
				fmt.Fprintf(table, "%s\t%s\t%s\n", s.Name, s.State, s.Cause)
			}
			return table.Flush()
		},
	}
}

func newKubeconfig(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the administrator's kubeconfig",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Open(*dir)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), c.Kubeconfig())
			}
			return err
		},
	}
}
