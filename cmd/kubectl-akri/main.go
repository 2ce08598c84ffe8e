// Command kubectl-akri shows people what Akri does. As "kubectl akri …" it is a
// plugin of kubectl, and it works alone.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	root := &cobra.Command{
		Use:           "kubectl-akri",
		Short:         "See and check what Akri does with your devices",
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl akri"},
	}
	root.AddCommand(newTree(os.Stdout))
	if err := root.ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
