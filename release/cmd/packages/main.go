// Command packages makes packages of kubectl-akri and akri-discovery for Linux, archives
// of kubectl-akri for other systems, and a manifest for krew. The Makefile runs it:
//
//	packages --version=v1.2.3                                              # make packages
//	packages --version=v1.2.3 --downloads=https://example.com/akri/v1.2.3  # … DOWNLOADS=…
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/release/packages"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var o packages.Options
	var created int64
	cmd := &cobra.Command{
		Use:          "packages",
		Short:        "Make packages of kubectl-akri and akri-discovery",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Root, err = build.Root(); err != nil {
				return err
			}
			o.Created, o.Log = time.Unix(created, 0), cmd.ErrOrStderr()
			names, err := packages.Build(cmd.Context(), o)
			for _, name := range names {
				fmt.Fprintln(cmd.OutOrStdout(), name)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.Version, "version", "", "version of the programs (required)")
	flags.StringVar(&o.Revision, "revision", "", "commit that is built")
	flags.Int64Var(&created, "created", 0, "time of the commit, in seconds since 1970")
	flags.StringVar(&o.Source, "source", "", "URL of the repository")
	flags.StringVar(&o.Downloads, "downloads", "", "URL of the directory that the archives will be in; krew's manifest needs it")
	flags.StringVar(&o.Dir, "dir", "", "directory for the results (default bin/packages)")
	flags.StringSliceVar(&o.Packages, "package", nil, "platforms of packages, such as linux/arm64 (default all)")
	flags.StringSliceVar(&o.Archives, "archive", nil, "platforms of archives, such as darwin/arm64 (default all)")
	_ = cmd.MarkFlagRequired("version") // the flag exists
	return cmd
}
