package handlers

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/e2e/peers"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

// TestONVIFLoss loses one packet in three between a camera and the nodes, in each
// direction. The Instance must not change.
func TestONVIFLoss(t *testing.T) {
	clustertest.Full(t)
	// With at least a minute, it uses the default interval between probes.
	duration, _ := clustertest.Soak(t, 15*time.Second)
	details := "{discoveryTimeoutSeconds: 1, intervalSeconds: 1, interfaces: [eth0]}"
	if duration >= time.Minute {
		details = "{discoveryTimeoutSeconds: 1, interfaces: [eth0]}"
	}
	c := cameras{newWorld(t, "onvif")}
	c.ipycam()
	c.loadBroker()
	c.configure(details)
	c.await(propertyUUID, ipycamUUID)
	c.eventually("both nodes", func() string { return state(c.instances()).complaint() })
	before := state(c.instances())
	dropped := c.losePackets()
	samples := 0
	for deadline := time.Now().Add(duration); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		samples++
		if now := state(c.instances()); now != before {
			t.Fatalf("after %d samples: %s, before: %s", samples, now, before)
		}
	}
	count := dropped()
	t.Logf("%d samples in %v; dropped:\n%s", samples, duration, count)
	for line := range strings.Lines(count) { // of a short run, all requests by TCP may be outside
		if strings.Contains(line, "udp") && strings.Contains(line, "packets 0 ") {
			t.Errorf("no message was dropped in one direction:\n%s", count)
		}
	}
}

// cameraState is what must not change of an Instance.
type cameraState string

func state(all map[string]instanceView) cameraState {
	var text []string
	for name, i := range all {
		nodes := slices.Sorted(slices.Values(i.Spec.Nodes))
		text = append(text, fmt.Sprintf("%s %s on %s", name, i.Metadata.UID, strings.Join(nodes, " and ")))
	}
	return cameraState(strings.Join(slices.Sorted(slices.Values(text)), ", "))
}

// complaint returns "" if the Instance has both nodes.
func (s cameraState) complaint() string {
	if strings.Contains(string(s), " and ") {
		return ""
	}
	return "the Instances are " + string(s)
}

// losePackets drops one packet in three of those that the camera receives, and of those
// that it sends. The function that it returns reports how many there were.
func (c cameras) losePackets() (dropped func() string) {
	c.t.Helper()
	c.nft("", `table inet loss {
	chain received {
		type filter hook input priority 0;
		udp dport 3702 numgen random mod 3 == 0 counter drop
		tcp dport 8101 numgen random mod 3 == 0 counter drop
	}
	chain sent {
		type filter hook output priority 0;
		udp sport 3702 numgen random mod 3 == 0 counter drop
		tcp sport 8101 numgen random mod 3 == 0 counter drop
	}
}`)
	c.t.Cleanup(func() { c.nft("", "delete table inet loss\n") })
	return func() string { return c.nft("", "list table inet loss\n") }
}

// nft runs commands of nftables on a node, or between the nodes if its name is empty, and
// returns what they print.
func (w *world) nft(node, commands string) string {
	w.t.Helper()
	root := peers.Debian(w.t, "nftables", "libnftables1", "libnftnl11", "libmnl0", "libjansson4", "libedit2", "libxtables12",
		"libgmp10", "libbsd0", "libmd0")
	var output strings.Builder
	err := w.Exec(context.WithoutCancel(w.ctx), cluster.Command{
		Node: node, Args: []string{filepath.Join(root, "usr", "sbin", "nft"), "-f", "-"}, Env: peers.Libraries(root),
		Stdin: strings.NewReader(commands), Stdout: &output, Stderr: &output,
	})
	if err != nil {
		w.t.Fatalf("nft: %v\n%s\n%s", err, commands, output.String())
	}
	return output.String()
}
