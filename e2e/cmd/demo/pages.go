package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"akri.sh/akri/kubebox/cluster"
)

// page is a web page of the demo.
type page struct {
	Title string
	// Service is the name of the Service in the Configuration's namespace. Empty: one for
	// each Instance, with the name of the Instance.
	Service string
	// Port is the preferred port on this machine. If it is taken, another is used.
	Port int
	Path string
	// Shows matches what the page has as soon as it shows its device. Its group, if it has
	// one, is the name of the device. Nil: the page is not that of one device.
	Shows *regexp.Regexp
}

const (
	// pagesPatience is how long all pages may take to show their devices, whose objects are
	// ready by then.
	pagesPatience = 20 * time.Second
	// pageTimeout bounds one request for a page.
	pageTimeout = 3 * time.Second
	// pageInterval is the time between two requests for a page.
	pageInterval = 200 * time.Millisecond
	// maxPage bounds what is read of a page, in bytes.
	maxPage = 1 << 20
)

// openPage is the page of a Service.
type openPage struct {
	page
	service string
	// address is HOST:PORT on this machine, and empty until the user has forwarded the page.
	address string
	name    string // of the device
	problem error  // why the page does not show its device
}

// showPages prints how to look at the pages of all parts. Those of the demo's own cluster
// are made reachable from this machine, and shown when they answer.
func (t demoTarget) showPages(ctx context.Context) error {
	var pages []*openPage
	for _, p := range t.parts() {
		opened, err := p.openPages(ctx, t)
		if err != nil {
			return err
		}
		pages = append(pages, opened...)
	}
	switch {
	case len(pages) == 0:
		return nil
	case t.local == nil:
		fmt.Print("\nForward a page to this machine, and open it in a browser:\n")
		for _, p := range pages {
			fmt.Printf("  kubectl --context %s -n %s port-forward service/%s %d:http   # %s: http://127.0.0.1:%d/%s\n",
				t.context, t.namespace, p.service, p.Port, p.Title, p.Port, p.Path)
		}
		return nil
	}
	awaitPages(ctx, pages)
	fmt.Print("\nOpen in a browser on this machine:\n")
	for _, p := range pages {
		fmt.Println("  " + p.describe())
	}
	fmt.Print(missingPictures(t.local.RoutesServices(), localDemo(t.local.Dir())))
	return nil
}

// missingPictures returns what to do if Pods of the demo's cluster do not reach Services.
func missingPictures(routesServices bool, d localDemo) string {
	if routesServices {
		return ""
	}
	return "The page of all cameras has no pictures, because Pods do not reach Services: this machine has no nftables that works.\n" +
		"Install it with apt-get install nftables, or on Fedora with dnf install nftables, and run: " + d.makeTarget("demo-down demo") + "\n"
}

// openPages returns the pages of a part.
func (p part) openPages(ctx context.Context, t demoTarget) (opened []*openPage, err error) {
	for _, each := range p.Pages {
		services := []string{each.Service}
		if each.Service == "" {
			names, err := t.Kubectl(ctx, "--namespace", t.namespace, "get", "instances", "--selector=akri.sh/configuration="+p.Configuration,
				"--output=jsonpath={.items[*].metadata.name}")
			if err != nil {
				return nil, err
			}
			services = strings.Fields(string(names))
		}
		for i, service := range services {
			o := &openPage{page: each, service: service}
			o.Port += i
			if t.local != nil {
				if o.address, err = forward(ctx, t.local, service, o.Port); err != nil {
					return nil, fmt.Errorf("open the page of Service %s: %w", service, err)
				}
			}
			opened = append(opened, o)
		}
	}
	return opened, nil
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

// awaitPages waits until all pages show their devices, or have taken too long.
func awaitPages(ctx context.Context, pages []*openPage) {
	ctx, cancel := context.WithTimeout(ctx, pagesPatience)
	defer cancel()
	_ = during("waiting until the pages answer", func() error {
		var waiting sync.WaitGroup
		for _, p := range pages {
			waiting.Go(func() { p.name, p.problem = p.await(ctx) })
		}
		waiting.Wait()
		return nil
	})
}

// describe returns where the page is, and what it shows.
func (o *openPage) describe() string {
	what := o.Title
	if o.name != "" {
		what += " " + o.name
	}
	text := fmt.Sprintf("http://%s/%s  %s (Service %s)", o.address, o.Path, what, o.service)
	if o.problem != nil {
		text += fmt.Sprintf(": not ready yet: %v", o.problem)
	}
	return text
}

// await waits until the page shows its device or ctx is done, and returns the name of the
// device.
func (o *openPage) await(ctx context.Context) (name string, err error) {
	for {
		name, problem := o.read(ctx)
		if problem == nil {
			return name, nil
		}
		if err == nil || ctx.Err() == nil { // that time is up is no reason
			err = problem
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(pageInterval):
		}
	}
}

// read reads the page once, and returns the name of the device.
func (o *openPage) read(ctx context.Context) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.address+"/"+o.Path, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if failure, ok := errors.AsType[*url.Error](err); ok {
		return "", failure.Err // the URL is printed anyway
	}
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxPage))
	switch {
	case err != nil:
		return "", err
	case response.StatusCode != http.StatusOK:
		return "", fmt.Errorf("it answers with status %d", response.StatusCode)
	case o.Shows == nil:
		return "", nil
	}
	match := o.Shows.FindSubmatch(text)
	if match == nil {
		return "", errors.New("it does not show its device")
	}
	return html.UnescapeString(string(bytes.Join(match[1:], nil))), nil
}
