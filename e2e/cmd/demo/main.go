// Command demo shows Akri with virtual devices and examples: the discovered devices, the
// objects created for them, and their web pages. It starts a Kubernetes cluster for that,
// or uses the one of the current kubeconfig context.
//
//	demo up                       # build anything out of date, start everything, show the result
//	demo down                     # stop and remove everything
//	demo --cluster=current up     # the same in a cluster that exists: asks first
//	demo --cluster=current down   # take it out again
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"akri.sh/akri/kubebox/cluster"
)

// usage is shown if the arguments are not valid.
const usage = "usage: demo [--dir=PATH | --cluster=current [--registry=HOST/PATH] [--yes]] up|down"

func main() {
	cluster.Reexec()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run runs the command with these arguments.
func run(ctx context.Context, arguments []string) error {
	var where, dir string
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.StringVar(&where, "cluster", "", "current: use the cluster of the current kubeconfig context; empty: start one")
	flags.StringVar(&dir, "dir", string(defaultDir), "the directory of the cluster that is started")
	flags.StringVar(&o.registry, "registry", "", "push images to this registry, such as registry.example/akri; nodes pull from it")
	flags.BoolVar(&o.yes, "yes", false, "do not ask before something is added to that cluster")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	absolute, err := filepath.Abs(dir) // printed commands run in other directories
	if err != nil {
		return err
	}
	switch {
	case where != "" && where != "current":
		return fmt.Errorf("--cluster=%s: only the value current is known", where)
	case where == "" && (o.registry != "" || o.yes):
		return errors.New("--registry and --yes are only for --cluster=current")
	case where != "" && dir != string(defaultDir):
		return errors.New("--dir is only for a cluster that is started, not for --cluster=current")
	case dir == "":
		return errors.New("--dir is empty: name a directory")
	case flags.NArg() != 1:
		return errors.New(usage)
	case flags.Arg(0) == "up" && where == "":
		return localDemo(absolute).up(ctx)
	case flags.Arg(0) == "down" && where == "":
		return localDemo(absolute).down()
	case flags.Arg(0) == "up":
		return upCurrent(ctx, o)
	case flags.Arg(0) == "down":
		return downCurrent(ctx)
	}
	return errors.New(usage)
}
