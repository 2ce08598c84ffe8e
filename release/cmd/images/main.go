// Command images builds and publishes the container images of Akri's programs. The
// Makefile runs it:
//
//	images build   --version=v1.2.3                                     # make images
//	images push    --version=v1.2.3 --registry=registry.example.com/akri  # make push
//	images archive --version=v1.2.3 --platform=linux/arm64              # make load
//	images archive --version=dev --cluster=/tmp/akri-demo               # make load CLUSTER=…
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/release/images"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:          "images",
		Short:        "Build and publish the container images of Akri's programs",
		SilenceUsage: true,
	}
	cmd.AddCommand(newBuild(), newPush(), newArchive())
	return cmd
}

// buildFlags adds the flags that set options.
func buildFlags(cmd *cobra.Command, o *images.Options, created *int64) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.Version, "version", "", "version of the programs, and tag of the images (required)")
	flags.StringVar(&o.Revision, "revision", "", "commit that is built")
	flags.Int64Var(created, "created", 0, "time of the commit, in seconds since 1970")
	flags.StringVar(&o.Source, "source", "", "URL of the repository")
	flags.StringSliceVar(&o.Images, "image", nil, "images to build (default all)")
	flags.StringVar(&o.Dir, "dir", "", "directory for the results (default bin/images)")
	_ = cmd.MarkFlagRequired("version") // the flag exists
}

// complete sets the options that are not flags.
func complete(o images.Options, created int64, log io.Writer) (images.Options, error) {
	var err error
	if o.Root, err = build.Root(); err != nil {
		return o, err
	}
	if created != 0 {
		o.Created = time.Unix(created, 0)
	}
	o.Log = log
	return o, nil
}

func newBuild() *cobra.Command {
	var o images.Options
	var created int64
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Write an OCI layout for each image, with all platforms",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := complete(o, created, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			built, err := images.Build(cmd.Context(), o)
			if err != nil {
				return err
			}
			return printBuilt(cmd.OutOrStdout(), built)
		},
	}
	buildFlags(cmd, &o, &created)
	cmd.Flags().StringSliceVar(&o.Platforms, "platform", nil, "platforms, such as linux/arm64 (default all)")
	return cmd
}

// printBuilt prints a table of images.
func printBuilt(out io.Writer, built []images.Built) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "IMAGE\tPLATFORM\tMB\tDIGEST")
	for i, b := range built {
		if i == 0 || built[i-1].Image != b.Image {
			fmt.Fprintf(table, "%s\tall\t\t%s\n", b.Image, b.Index)
		}
		fmt.Fprintf(table, "%s\t%s\t%.1f\t%s\n", b.Image, b.Platform, float64(b.Size)/1e6, b.Digest)
	}
	return table.Flush()
}

func newPush() *cobra.Command {
	var names []string
	var dir, registry string
	var plainHTTP bool
	cmd := &cobra.Command{
		Use:   "push",
		Short: "Publish the images that build has written, and their bills of materials as referrers",
		Long: `push publishes the images that build has written, with their tag, and their bills
of materials as referrers. It prints each image's name with its digest. It uses the
credentials of docker login, from $DOCKER_CONFIG/config.json.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			definitions, err := images.Select(names)
			if err != nil {
				return err
			}
			if dir == "" {
				root, err := build.Root()
				if err != nil {
					return err
				}
				dir = filepath.Join(root, "bin", "images")
			}
			for _, d := range definitions {
				pushed, err := images.Push(cmd.Context(), filepath.Join(dir, d.Name), registry, d.Name, plainHTTP)
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), pushed)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&registry, "registry", "", "where to publish, such as registry.example.com/akri (required)")
	flags.BoolVar(&plainHTTP, "plain-http", false, "allow connections without TLS; loopback addresses need no permission")
	flags.StringSliceVar(&names, "image", nil, "images to publish (default all)")
	flags.StringVar(&dir, "dir", "", "directory with the results of build (default bin/images)")
	_ = cmd.MarkFlagRequired("registry") // the flag exists
	return cmd
}

func newArchive() *cobra.Command {
	var o images.Options
	var created int64
	var platform, clusterDir string
	cmd := &cobra.Command{
		Use:   "archive",
		Short: "Write the images for one platform as archives, and load them into a cluster's nodes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := complete(o, created, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			o.Platforms = []string{platform}
			archives, err := images.Archive(cmd.Context(), o)
			if err != nil {
				return err
			}
			if clusterDir != "" {
				c, err := cluster.Open(clusterDir)
				if err != nil {
					return err
				}
				if err := c.Load(cmd.Context(), archives...); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "All nodes of the cluster have loaded these archives. Their images have the tag %s.\n", o.Version)
				for _, archive := range archives {
					fmt.Fprintf(cmd.OutOrStdout(), "  %s\n", archive)
				}
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Copy the archives in %s to all nodes, and import them there (on k3s with k3s ctr):\n",
				filepath.Dir(archives[0]))
			for _, archive := range archives {
				fmt.Fprintf(cmd.OutOrStdout(), "  ctr -n k8s.io images import %s\n", filepath.Base(archive))
			}
			fmt.Fprintln(cmd.OutOrStdout(), "The chart that make chart packages without REGISTRY uses these images.")
			return nil
		},
	}
	buildFlags(cmd, &o, &created)
	cmd.Flags().StringVar(&platform, "platform", images.Native(), "platform of the nodes")
	cmd.Flags().StringVar(&clusterDir, "cluster", "", "run directory of a cluster, such as the demo's; its nodes load the images")
	return cmd
}
