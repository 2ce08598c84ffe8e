package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/cluster"
)

// show prints the objects of all parts, the addresses of the pages, and commands to
// explore the cluster.
func show(ctx context.Context, t demoTarget, programs akri.Programs) error {
	fmt.Println()
	tree := exec.CommandContext(ctx, filepath.Join(programs.Dir, "kubectl-akri"), "tree", "--namespace", t.namespace,
		"--kubeconfig", t.kubeconfig, "--context", t.context)
	tree.Stdout, tree.Stderr = os.Stdout, os.Stderr
	if err := tree.Run(); err != nil {
		return fmt.Errorf("kubectl akri tree: %w", err)
	}
	if err := t.showPages(ctx); err != nil {
		return err
	}
	// The commands also work in another shell, whose current cluster is another one.
	k, downCommand := "kubectl --kubeconfig "+t.kubeconfig, "make demo-down"
	if t.local == nil {
		k, downCommand = "kubectl --context "+t.context, "make demo-down CLUSTER=current"
		fmt.Printf("\nExplore the cluster:\n  export PATH=%s:$PATH\n", programs.Dir)
	} else {
		fmt.Printf("\nExplore the cluster:\n  export PATH=%s:%s:$PATH\n", programs.Dir, filepath.Join(programs.Dir, "k8s"))
	}
	inNamespace := k
	if t.namespace != "default" {
		inNamespace += " -n " + t.namespace
	}
	fmt.Printf("  %s get akric,akrii,pods,services\n  %s describe akric %s\n  kubectl akri tree%s -n %s\n",
		inNamespace, inNamespace, debugEcho.Configuration, strings.TrimPrefix(k, "kubectl"), t.namespace)
	t.showUnplugging(k)
	fmt.Printf("Stop the demo and remove everything:\n  %s\n", downCommand)
	return nil
}

// showUnplugging prints the commands that make devices go and come again.
func (t demoTarget) showUnplugging(k string) {
	for _, state := range []struct {
		text, replicas, availability string
	}{
		{"Unplug a device, and watch its objects go:", "0", "OFFLINE"},
		{"Plug it in again:", "1", "ONLINE"},
	} {
		fmt.Println(state.text)
		for _, p := range t.parts() {
			if p.Device != "" {
				fmt.Printf("  %s -n %s scale deployment/%s --replicas=%s\n", k, t.devices, p.Device, state.replicas)
			}
		}
		if t.availability != "" {
			fmt.Printf("  echo %s > %s\n", state.availability, t.availability)
		}
	}
}

// showPages prints how to look at the pages of all parts. Those of the demo's own cluster
// are made reachable from this machine.
func (t demoTarget) showPages(ctx context.Context) error {
	var pages strings.Builder
	for _, p := range t.parts() {
		if err := p.openPages(ctx, t, &pages); err != nil {
			return err
		}
	}
	if pages.Len() == 0 {
		return nil
	}
	if t.local == nil {
		fmt.Printf("\nForward a page to this machine, and open it in a browser:\n%s", pages.String())
	} else {
		fmt.Printf("\nOpen in a browser on this machine:\n%s", pages.String())
	}
	return nil
}

// openPages writes how to open the pages of a part.
func (p part) openPages(ctx context.Context, t demoTarget, to *strings.Builder) error {
	for _, each := range p.Pages {
		services := []string{each.Service}
		if each.Service == "" {
			names, err := t.Kubectl(ctx, "--namespace", t.namespace, "get", "instances", "--selector=akri.sh/configuration="+p.Configuration,
				"--output=jsonpath={.items[*].metadata.name}")
			if err != nil {
				return err
			}
			services = strings.Fields(string(names))
		}
		for i, service := range services {
			port := each.Port + i
			if t.local == nil {
				fmt.Fprintf(to, "  kubectl --context %s -n %s port-forward service/%s %d:http   # %s: http://127.0.0.1:%d/%s\n",
					t.context, t.namespace, service, port, each.Title, port, each.Path)
				continue
			}
			address, err := forward(ctx, t.local, service, port)
			if err != nil {
				return fmt.Errorf("open the page of Service %s: %w", service, err)
			}
			fmt.Fprintf(to, "  http://%s/%s  %s (Service %s)\n", address, each.Path, titleOf(ctx, address, each), service)
		}
	}
	return nil
}

// title matches the title of an HTML page.
var title = regexp.MustCompile(`<title>([^<]*)</title>`)

// titleOf returns what to call a page. That of an Instance has the title of the HTML,
// which for a camera is the camera's name.
func titleOf(ctx context.Context, address string, p page) string {
	if p.Service != "" {
		return p.Title
	}
	const maxPage, patience = 1 << 20, 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/"+p.Path, nil)
	if err != nil {
		return p.Title
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return p.Title // people see it when they open the page
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxPage))
	if match := title.FindSubmatch(text); match != nil {
		return p.Title + " " + html.UnescapeString(string(match[1]))
	}
	return p.Title
}

// forward makes a Service reachable at a port, or at another if that is taken.
func forward(ctx context.Context, c *cluster.Cluster, service string, port int) (string, error) {
	target := cluster.Service{Namespace: "default", Name: service, Port: "http"}
	address, err := c.Forward(ctx, target, port)
	if errors.Is(err, syscall.EADDRINUSE) {
		address, err = c.Forward(ctx, target, 0)
	}
	return address, err
}
