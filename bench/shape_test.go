package main

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestParseShape(t *testing.T) {
	for text, want := range map[string]shape{
		"local:100x7":   {Devices: 100, Nodes: 7},
		"shared:1x1000": {Shared: true, Devices: 1, Nodes: 1000},
		"shared:1x9+91": {Shared: true, Devices: 1, Nodes: 9, Others: 91},
	} {
		if got, err := parseShape(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "local", "local:3", "local:0x1", "local:1x0", "local:1x1001", "other:1x1", "local:1x1x1", "local:1000001x1",
		"local:1x1+1", "shared:1x1+0", "shared:1x1+1001", "shared:1x1+", "shared:1x1+1+1",
		"local:9223372036854775807x1", // with it, the number of file descriptors would overflow
	} {
		_, err := parseShape(text)
		expectError(t, err, fmt.Sprintf("shape %q: want local:DEVICESxNODES, shared:DEVICESxNODES or shared:DEVICESxNODES+OTHERS, "+
			"at most 1000000 devices and 1000 nodes, such as shared:100x10", text))
	}
	if got := (shape{Devices: 3, Nodes: 2}).instances(); got != 6 {
		t.Errorf("3 local devices on 2 nodes are %d Instances, want 6", got)
	}
	if got := (shape{Shared: true, Devices: 3, Nodes: 2}).instances(); got != 3 {
		t.Errorf("3 shared devices on 2 nodes are %d Instances, want 3", got)
	}
}

func TestAgentsPerProcess(t *testing.T) {
	if got, err := (shape{Devices: 1, Nodes: 1}).agentsPerProcess(10); err != nil || got != 1 {
		t.Errorf("one device on one node: got %d, %v", got, err)
	}
	// With three devices, four agents need 4 * (16 + 2*3) = 88 file descriptors and 4 + 10
	// watches, and their kubelets 4 * (8 + 3) file descriptors.
	const files, watches = "4 nodes: the agents need 88 file descriptors, and the limit is 87: " +
		"choose a smaller shape, run as root, or raise it with ulimit -n",
		"4 nodes: each agent watches files, and /proc/sys/fs/inotify/max_user_instances is 13: " +
			"choose a smaller shape, run as root, or set sysctl fs.inotify.max_user_instances=14"
	cases := map[string]struct {
		files   uint64
		watches int
		root    bool
		most    int
		want    string
	}{
		"just enough":                      {88, 14, false, 4, ""},
		"more than enough":                 {1000, 1000, true, 4, ""},
		"too few file descriptors":         {87, 14, false, 0, files},
		"too few file watches":             {88, 13, false, 0, watches},
		"too few of both":                  {87, 13, false, 0, watches},
		"root, too few file descriptors":   {87, 14, true, 3, ""},
		"root, too few file watches":       {88, 12, true, 2, ""},
		"root, too few watches for one":    {88, 10, true, 0, strings.ReplaceAll(watches, "13", "10")},
		"root, too few for the kubelets":   {43, 14, true, 0, "4 nodes: the kubelets need 44 file descriptors, and the limit is 43: choose"},
		"root, barely enough for kubelets": {44, 14, true, 2, ""},
		"too few for agents and kubelets":  {43, 14, false, 0, "4 nodes: the kubelets need 44 file descriptors"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := shape{Shared: true, Devices: 3, Nodes: 4}
			want := c.want
			if want != "" {
				want = "3 shared devices x " + want
			}
			most, err := s.split(s.nodes(0), c.files, c.watches, c.root)
			expectError(t, err, want)
			if most != c.most {
				t.Errorf("got %d agents per process, want %d", most, c.most)
			}
		})
	}
	if got := (shape{Shared: true, Nodes: 4}).nodes(3); got != 7 {
		t.Errorf("three nodes join four: got %d", got)
	}
	if got := (shape{Nodes: 4}).nodes(3); got != 4 {
		t.Errorf("no node joins local devices: got %d, want 4", got)
	}
	if _, err := (shape{Devices: maxDevices, Nodes: maxNodes}).split(maxNodes, 1<<20, 1<<20, true); err == nil {
		t.Error("a billion devices: got no error")
	}
}

func TestCheckInstances(t *testing.T) {
	on := func(nodes any) unstructured.Unstructured {
		return *object("akri.sh/v0", "Instance", "bench", "a", map[string]any{"spec": map[string]any{"nodes": nodes}})
	}
	one, two := on([]any{"1"}), on([]any{"1", "2"})
	cases := map[string]struct {
		shared bool
		all    []unstructured.Unstructured
		nodes  int
		want   string
	}{
		"shared, settled":          {true, []unstructured.Unstructured{two, two}, 2, ""},
		"local, settled":           {false, []unstructured.Unstructured{one, one, one, one}, 2, ""},
		"an Instance is missing":   {true, []unstructured.Unstructured{two}, 2, "not settled: 1 Instances, want 2"},
		"an Instance too many":     {true, []unstructured.Unstructured{two, two, two}, 2, "not settled: 3 Instances, want 2"},
		"a node is missing":        {true, []unstructured.Unstructured{two, one}, 2, "not settled: Instance a names 1 nodes, want 2$"},
		"a node has not left":      {true, []unstructured.Unstructured{one, two}, 1, "not settled: Instance a names 2 nodes, want 1$"},
		"a local one on two nodes": {false, []unstructured.Unstructured{one, one, one, two}, 2, "not settled: Instance a names 2 nodes, want 1$"},
		"its nodes are not a list": {true, []unstructured.Unstructured{two, on("1")}, 2, "not settled: Instance a: .spec.nodes accessor error"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := shape{Shared: c.shared, Devices: 2, Nodes: 2}.check(c.all, c.nodes)
			want, whole := strings.CutSuffix(c.want, "$")
			expectError(t, err, want)
			if whole && err != nil && err.Error() != want {
				t.Errorf("got the error %q, want %q and nothing else", err, want)
			}
		})
	}
}
