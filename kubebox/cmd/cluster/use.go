package main

import (
	"os"

	"github.com/spf13/cobra"

	"akri.sh/akri/kubebox/cluster"
)

func newKubectl(dir *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubectl ARG...",
		Short: "Run kubectl as the cluster's administrator",
		Args:  cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := cluster.Open(*dir)
			if err != nil {
				return err
			}
			return c.BecomeKubectl(args...)
		},
	}
	cmd.Flags().SetInterspersed(false) // flags after the first argument are for kubectl
	return cmd
}

func newExec(dir *string) *cobra.Command {
	var command cluster.Command
	cmd := &cobra.Command{
		Use:   "exec NODE|control-plane COMMAND...",
		Short: "Run a command from this machine inside a node",
		Long: "Run a command from this machine inside a node, or in the control plane's namespaces.\n" +
			"It sees the machine's files, but the node's own network, processes, /var, /etc, /opt and /run.",
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := cluster.Open(*dir)
			if err != nil {
				return err
			}
			if args[0] != "control-plane" {
				command.Node = args[0]
			}
			command.Args = args[1:]
			if command.Args[0] == "--" {
				command.Args = command.Args[1:]
			}
			command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
			return c.Exec(cmd.Context(), command)
		},
	}
	cmd.Flags().StringArrayVar(&command.Env, "env", nil, "environment variable NAME=VALUE of the command; may be repeated")
	cmd.Flags().SetInterspersed(false) // flags after the node are for the command
	return cmd
}

func newLoad(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "load ARCHIVE...",
		Short: "Load image archives into all nodes",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := cluster.Open(*dir)
			if err != nil {
				return err
			}
			return c.Load(cmd.Context(), args...)
		},
	}
}

func newDo(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "do ACTION COMPONENT",
		Short: "Start, stop, restart, kill, pause or resume a component",
		Long: "Start, stop, restart, kill, pause or resume a component:\n" +
			"etcd, kube-apiserver, kube-controller-manager, kube-scheduler, coredns,\n" +
			"node1/kubelet, node1/kube-proxy, node1/containerd, or node1 (the whole node).",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := cluster.Open(*dir)
			if err != nil {
				return err
			}
			return c.Do(cmd.Context(), cluster.Action(args[0]), args[1])
		},
	}
}
