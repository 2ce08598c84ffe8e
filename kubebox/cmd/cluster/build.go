package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/image"
)

func newBuild() *cobra.Command {
	var o build.Options
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build Kubernetes, etcd, containerd, runc and CNI plugins from Go modules",
		Long: "Build Kubernetes, etcd, containerd, runc and CNI plugins from Go modules.\n" +
			"The first build takes minutes; later builds skip everything that is up to date.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Log = cmd.ErrOrStderr()
			return build.All(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Dir, "bin", "", "directory for the results (default bin/k8s in the repository)")
	cmd.Flags().BoolVar(&o.Force, "force", false, "rebuild everything, even if it is up to date")
	return cmd
}

func newImage() *cobra.Command {
	var output string
	var env []string
	cmd := &cobra.Command{
		Use:   "image NAME[:TAG] EXECUTABLE...",
		Short: "Write an image of static executables, without a registry",
		Long: "Write an image of static executables, without a registry.\n" +
			"The executables are placed in the image's root directory; the first is its entrypoint.\n" +
			"Use the load command to load the archive into nodes.",
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			i := image.Image{Name: args[0], Files: map[string]string{}, Env: env}
			for _, file := range args[1:] {
				i.Files["/"+filepath.Base(file)] = file
			}
			i.Entrypoint = []string{"/" + filepath.Base(args[1])}
			if output == "" {
				output = filepath.Base(args[1]) + ".tar"
			}
			if err := image.Write(output, i); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), output)
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "archive to write (default EXECUTABLE.tar)")
	cmd.Flags().StringArrayVar(&env, "env", nil, "environment variable NAME=VALUE of the image; may be repeated")
	return cmd
}
