// Files is an example of a discovery handler: each file in a directory of the node is a
// device.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"akri.sh/akri/discovery"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := discovery.Serve(ctx, "files", handler{interval: scanInterval}, discovery.FromEnvironment()); err != nil {
		fmt.Fprintln(os.Stderr, "files:", err)
		os.Exit(1)
	}
}
