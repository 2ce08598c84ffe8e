package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"akri.sh/akri/e2e/akri"
)

// additions counts the objects of the chart by kind.
type additions struct {
	namespaced, clusterScoped map[string]int
	// hostPaths are the directories of the nodes that Pods mount.
	hostPaths []string
}

// render returns what the chart would add with these values.
func (t demoTarget) render(ctx context.Context, programs akri.Programs, settings []string) (additions, error) {
	arguments := []string{"template", "akri", chartDir, "--namespace", akri.Namespace}
	for _, setting := range settings {
		arguments = append(arguments, "--set", setting)
	}
	text, err := t.helm(ctx, programs, arguments...)
	if err != nil {
		return additions{}, err
	}
	return count(text)
}

// count counts the objects of a manifest. Tests of the chart, which are hooks, do not
// count.
func count(manifest []byte) (additions, error) {
	a := additions{namespaced: map[string]int{}, clusterScoped: map[string]int{}}
	paths := map[string]bool{}
	decoder := yaml.NewDecoder(bytes.NewReader(manifest))
	for {
		var object struct {
			Kind     string
			Metadata struct {
				Namespace   string
				Annotations map[string]string
			}
			Spec struct {
				Template struct {
					Spec struct {
						Volumes []struct {
							HostPath struct{ Path string } `yaml:"hostPath"`
						}
					}
				}
			}
		}
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			a.hostPaths = slices.Sorted(maps.Keys(paths))
			return a, nil
		}
		// Only workloads have a Pod template here; other kinds may have fields of these names.
		if typeError, ok := errors.AsType[*yaml.TypeError](err); err != nil && !ok {
			return a, fmt.Errorf("parse the rendered chart: %w", err)
		} else if ok && object.Kind == "" {
			return a, fmt.Errorf("parse the rendered chart: %w", typeError)
		}
		switch {
		case object.Kind == "" || object.Metadata.Annotations["helm.sh/hook"] != "":
		case object.Metadata.Namespace == "":
			a.clusterScoped[object.Kind]++
		default:
			a.namespaced[object.Kind]++
		}
		for _, volume := range object.Spec.Template.Spec.Volumes {
			if volume.HostPath.Path != "" {
				paths[volume.HostPath.Path] = true
			}
		}
	}
}

// list formats counts by kind.
func list(counts map[string]int) string {
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(words, ", ")
}

// plan says what the demo would add to a site, and what it would leave there.
func plan(s site, a additions, images string) string {
	crds := "its CRDs are removed with it"
	if slices.Contains(s.crdValues(), "crds.enabled=false") {
		crds = "Akri's CRDs, which exist, are neither changed nor removed"
	}
	return fmt.Sprintf(`
The demo would add to the cluster of the context %q (%s, Kubernetes %s, %d nodes):

  namespace %s   Akri, as the Helm release "akri": %s
                          Each DaemonSet has a Pod on each of %d nodes.
  namespace %s     two virtual cameras, a virtual PLC, three Configurations, and what Akri creates for them
  for the whole cluster   %s
                          The webhook and the policies review only the kinds of the group akri.sh.
  on the nodes            Pods mount %s.
                          The handler onvif and the cameras use the node's network: ports 9471, 9481, 8881 and 8882.
  images                  %s

No existing object is changed. Take it out again with: make demo-down CLUSTER=current
(%s; images and the directory /var/lib/akri stay on the nodes, and resources akri.sh/... with
0 allocatable in their status until the kubelet restarts).
`, s.Context, s.Server, s.Version, len(s.Nodes), akri.Namespace, list(a.namespaced), len(s.Nodes), demoNamespace,
		list(a.clusterScoped), strings.Join(a.hostPaths, ", "), images, crds)
}
