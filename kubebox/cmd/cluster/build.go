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
		Short: "Build Kubernetes, etcd, CoreDNS, containerd, runc and CNI plugins from Go modules",
		Long: "Build Kubernetes, etcd, CoreDNS, containerd, runc and CNI plugins from Go modules.\n" +
			"The first build takes minutes; later builds skip everything that is up to date.\n\n" +
			"--kubernetes and --kubelet select other versions than the pinned one. Each is built in\n" +
			"a directory of its own, such as bin/k8s-v1.36.3. A kubelet may be up to three minor\n" +
			"releases older than the control plane.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Log = cmd.ErrOrStderr()
			return build.All(cmd.Context(), o)
		},
	}
	requested := build.Requested()
	cmd.Flags().StringVar(&o.Versions.Kubernetes, "kubernetes", requested.Kubernetes,
		"version of the control plane, such as v1.36.3 ("+build.KubernetesVariable+"; default the pinned version)")
	cmd.Flags().StringVar(&o.Versions.Kubelet, "kubelet", requested.Kubelet,
		"version of kubelet and kube-proxy ("+build.KubeletVariable+"; default that of the control plane)")
	cmd.Flags().StringVar(&o.Dir, "bin", "", "directory for the results (default bin/k8s in the repository, with the versions if set)")
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
