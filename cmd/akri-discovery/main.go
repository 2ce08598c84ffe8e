// Akri-discovery runs one of the built-in discovery handlers.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"akri.sh/akri/internal/manpages"
	"akri.sh/akri/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := newRoot(os.Getenv).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "akri-discovery:", err)
		os.Exit(1)
	}
}

func newRoot(environment func(string) string) *cobra.Command {
	root := &cobra.Command{
		Use:   "akri-discovery HANDLER",
		Short: "Run a discovery handler",
		Long: `akri-discovery runs one of the built-in discovery handlers. Each has its own
command. A handler registers with the agent of its node and then finds devices for
the Configurations that refer to it.`,
		Version:       version.Text(),
		SilenceErrors: true, SilenceUsage: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetUsageFunc(printUsage)
	for _, handler := range commands {
		root.AddCommand(handler(environment).cobra(environment))
	}
	root.AddCommand(newCheck(), manpages.NewCommand())
	return root
}
