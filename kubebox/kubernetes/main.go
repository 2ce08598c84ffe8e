package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // CronJobs name time zones; do not depend on the machine's database

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics on /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// programs are the upstream commands by name. Each sees os.Args with its own name
// first, as if it were a separate executable.
var programs = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kubectl":                 runKubectl,
	"kubelet":                 serve(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	"kube-apiserver":          serve(apiserver.NewAPIServerCommand),
	"kube-controller-manager": serve(controllermanager.NewControllerManagerCommand),
	"kube-proxy":              serve(proxy.NewProxyCommand),
	"kube-scheduler":          serve(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
}

func main() {
	args, err := resolve(os.Args)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Args = args
	programs[args[0]]()
}

// resolve returns the arguments of the selected program, which is named by the
// executable (a symbolic link) or else by the first argument.
func resolve(args []string) ([]string, error) {
	if name := filepath.Base(args[0]); programs[name] != nil {
		return append([]string{name}, args[1:]...), nil
	}
	if len(args) > 1 && programs[args[1]] != nil {
		return args[1:], nil
	}
	names := slices.Sorted(maps.Keys(programs))
	return nil, fmt.Errorf("usage: kubenode %s [flags]", strings.Join(names, "|"))
}

func serve(command func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(command())) }
}

func runKubectl() {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // prints the error as kubectl does and exits
	}
}
