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
	} {
		if got, err := parseShape(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "local", "local:3", "local:0x1", "local:1x0", "local:1x1001", "other:1x1", "local:1x1x1", "local:1000001x1",
		"local:9223372036854775807x1", // with it, the number of file descriptors would overflow
	} {
		_, err := parseShape(text)
		expectError(t, err, fmt.Sprintf("shape %q: want local:DEVICESxNODES or shared:DEVICESxNODES, "+
			"at most 1000000 devices and 1000 nodes, such as shared:100x10", text))
	}
	if got := (shape{Devices: 3, Nodes: 2}).instances(); got != 6 {
		t.Errorf("3 local devices on 2 nodes are %d Instances, want 6", got)
	}
	if got := (shape{Shared: true, Devices: 3, Nodes: 2}).instances(); got != 3 {
		t.Errorf("3 shared devices on 2 nodes are %d Instances, want 3", got)
	}
}

func TestCheckLimits(t *testing.T) {
	if err := (shape{Devices: 1, Nodes: 1}).checkLimits(0); err != nil {
		t.Errorf("one device on one node: %v", err)
	}
	// Three devices on four nodes need 4 * (16 + 2*3) file descriptors and 4 + 10 watches.
	cases := map[string]struct {
		additional int
		files      uint64
		watches    int
		want       string
	}{
		"just enough": {1, 88, 14, ""},
		"too few file descriptors": {
			1, 87, 14, "3 shared devices x 3 nodes: the agents need 88 file descriptors, and the limit is 87: " +
				"choose a smaller shape, or raise it with ulimit -n",
		},
		"too few file watches": {
			1, 88, 13, "3 shared devices x 3 nodes: each agent watches files, and /proc/sys/fs/inotify/max_user_instances is 13: " +
				"choose a smaller shape, or set sysctl fs.inotify.max_user_instances=14",
		},
		"without joining nodes": {0, 66, 13, ""},
		"with joining nodes":    {1, 66, 13, "3 shared devices x 3 nodes: the agents need 88"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			expectError(t, shape{Shared: true, Devices: 3, Nodes: 3}.fits(c.additional, c.files, c.watches), c.want)
		})
	}
	if err := (shape{Devices: maxDevices, Nodes: maxNodes}).fits(0, 1<<20, 1<<20); err == nil {
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
