package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"akri.sh/akri/e2e/akri"
)

// site is what the demo has to know about a cluster that exists.
type site struct {
	Context, Server, Version string
	Nodes                    []siteNode
	// CRDs reports whether Akri's CRDs exist.
	CRDs bool
	// Demo is the value of broughtLabel: empty unless the demo is, or was, installed.
	Demo string
	// Configurations are all Configurations, as NAMESPACE/NAME.
	Configurations []string
}

// siteNode is a node of a site.
type siteNode struct {
	Name, Hostname, Architecture string
	Kubelet, Runtime             string // versions
	Minikube                     string // profile, or empty
}

// foreignConfigurations returns the Configurations that are not the demo's.
func (s site) foreignConfigurations() []string {
	return slices.DeleteFunc(slices.Clone(s.Configurations), func(name string) bool {
		return strings.HasPrefix(name, demoNamespace+"/")
	})
}

// crdValues returns the chart's values for the CRDs. CRDs that exist are not touched;
// those that the demo brings go with it.
func (s site) crdValues() []string {
	if s.Demo == found || s.Demo == "" && s.CRDs {
		return []string{"crds.enabled=false"}
	}
	return []string{"crds.keep=false"}
}

// survey reads a site. It is an error if Akri is installed, but not by the demo, or if
// the nodes cannot run what this machine builds.
func survey(ctx context.Context, t demoTarget) (site, error) {
	s := site{Context: t.context}
	server, err := t.Kubectl(ctx, "config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}")
	if err != nil {
		return s, err
	}
	s.Server = string(server)
	if err := s.readNodes(ctx, t); err != nil {
		return s, fmt.Errorf("the cluster of the context %q (%s): %w", s.Context, s.Server, err)
	}
	if err := s.readAkri(ctx, t); err != nil {
		return s, err
	}
	for _, n := range s.Nodes {
		if n.Architecture != runtime.GOARCH {
			return s, fmt.Errorf("the node %s is %s, but the demo builds images for this machine, %s: build and push for all platforms with "+
				"make push REGISTRY=HOST/PATH, and install the chart", n.Name, n.Architecture, runtime.GOARCH)
		}
	}
	return s, nil
}

// readNodes reads the nodes.
func (s *site) readNodes(ctx context.Context, t demoTarget) error {
	text, err := t.Kubectl(ctx, "--request-timeout=15s", "get", "nodes", "--output=json")
	if err != nil {
		return err
	}
	var list struct {
		Items []struct {
			Metadata struct {
				Name   string            `json:"name"`
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Status struct {
				NodeInfo struct {
					Architecture            string `json:"architecture"`
					KubeletVersion          string `json:"kubeletVersion"`
					ContainerRuntimeVersion string `json:"containerRuntimeVersion"`
				} `json:"nodeInfo"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	for _, item := range list.Items {
		info := item.Status.NodeInfo
		s.Version = info.KubeletVersion
		s.Nodes = append(s.Nodes, siteNode{
			Name: item.Metadata.Name, Hostname: item.Metadata.Labels["kubernetes.io/hostname"],
			Architecture: info.Architecture, Kubelet: info.KubeletVersion, Runtime: info.ContainerRuntimeVersion,
			Minikube: item.Metadata.Labels["minikube.k8s.io/name"],
		})
	}
	return nil
}

// readAkri finds out whether Akri, its CRDs or the demo are there.
func (s *site) readAkri(ctx context.Context, t demoTarget) error {
	crds, err := t.Kubectl(ctx, "get", "crds", "configurations.akri.sh", "instances.akri.sh", "--ignore-not-found", "--output=name")
	if err != nil {
		return err
	}
	s.CRDs = len(crds) > 0
	demo, err := t.Kubectl(ctx, "get", "namespaces", "--selector="+broughtLabel,
		"--output=jsonpath={.items[0].metadata.labels['"+strings.ReplaceAll(broughtLabel, ".", `\.`)+"']}")
	if err == nil { // no namespace is an error of JSONPath
		s.Demo = string(demo)
	}
	if s.CRDs {
		text, err := t.Kubectl(ctx, "get", "configurations.akri.sh", "--all-namespaces",
			`--output=jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{"\n"}{end}`)
		if err != nil {
			return err
		}
		s.Configurations = strings.Fields(string(text))
	}
	if s.Demo != "" {
		return nil
	}
	existing, err := t.Kubectl(ctx, "get", "namespaces", akri.Namespace, demoNamespace, "--ignore-not-found", "--output=name")
	if err != nil {
		return err
	}
	installed, err := t.Kubectl(ctx, "get", "daemonsets,deployments", "--all-namespaces", "--selector=app.kubernetes.io/part-of=akri",
		`--output=jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {end}`)
	if err != nil {
		return err
	}
	if found := strings.Fields(string(existing) + " " + string(installed)); len(found) > 0 {
		return fmt.Errorf("the cluster of the context %q has Akri, or what the demo would create, already: %s: "+
			"the demo changes nothing that exists", s.Context, strings.Join(found, ", "))
	}
	return nil
}
