package handlers

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/clustertest"
)

// TestMDNSPacketLoss drops one packet of mDNS in three, in both directions on both nodes. No
// device may disappear or change.
func TestMDNSPacketLoss(t *testing.T) {
	clustertest.Full(t)
	duration, _ := clustertest.Soak(t, 0)
	if duration == 0 {
		t.Skip("it takes minutes to lose enough packets: it runs in make soak")
	}
	w := newWorld(t, "mdns")
	avahi, zeroconf := w.avahi(), w.zeroconf()
	var names []string
	for i := range 5 {
		name := fmt.Sprintf("Avahi %d", i)
		avahi.write(fmt.Sprintf("%d.service", i), avahiService(name, "_akri-c._tcp", 8080+i))
		names = append(names, name)
		name = fmt.Sprintf("Zeroconf %d", i)
		zeroconf.write(name+".json", zeroconfService(t, "_akri-c._tcp", 9080+i, 0, nil))
		names = append(names, name)
	}
	w.apply(fmt.Sprintf(mdnsConfiguration, "_akri-c._tcp"))
	before := w.await("MDNS_INSTANCE", names...)
	w.eventually("both nodes know all services", func() string {
		for name, i := range w.instances() {
			if len(i.Spec.Nodes) != 2 {
				return fmt.Sprint(name, " is on ", i.Spec.Nodes)
			}
		}
		return ""
	})
	changes := map[string]string{}
	for _, node := range w.Nodes() {
		changes[node] = w.deviceChanges(node)
		w.nft(node, `table inet akri_loss {
	chain in { type filter hook input priority 0; policy accept; udp dport 5353 numgen random mod 3 == 0 counter drop
	}
	chain out { type filter hook output priority 0; policy accept; udp dport 5353 numgen random mod 3 == 0 counter drop
	}
}
`)
		t.Cleanup(func() { w.nft(node, "delete table inet akri_loss\n") })
	}
	select {
	case <-time.After(duration): // the time is what is tested
	case <-t.Context().Done():
	}
	dropped := regexp.MustCompile(`counter packets (\d+)`)
	for _, node := range w.Nodes() {
		for _, match := range dropped.FindAllStringSubmatch(w.nft(node, "list table inet akri_loss\n"), -1) {
			count, _ := strconv.Atoi(match[1])
			if t.Logf("%s: %d packets dropped in one direction", node, count); count < 3 {
				t.Errorf("%s: nearly nothing was lost", node)
			}
		}
		if now := w.deviceChanges(node); now != changes[node] {
			t.Errorf("%s: devices have changed: before\n%s\nafter\n%s", node, changes[node], now)
		}
	}
	w.unchanged(before)
}

// unchanged fails the test if one of the Instances is not the same any more.
func (w *world) unchanged(before map[string]instanceView) {
	w.t.Helper()
	after := w.instances()
	for name, i := range before {
		if after[name].Metadata.UID != i.Metadata.UID {
			w.t.Errorf("%s is not the same Instance", name)
		}
	}
}

// deviceChanges returns the metrics about changes of devices of the handler on a node.
func (w *world) deviceChanges(node string) string {
	w.t.Helper()
	var lines []string
	for line := range strings.Lines(w.handlerMetrics(node)) {
		if strings.HasPrefix(line, "akri_handler_device_changes_total") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		w.t.Fatalf("%s: the handler has no such metric", node)
	}
	return strings.Join(lines, "")
}

// handlerMetrics returns the metrics of the handler mdns on a node.
func (w *world) handlerMetrics(node string) string {
	w.t.Helper()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return w.Dial(ctx, node, network, "127.0.0.1:9472")
		},
	}}
	response, err := client.Get("http://handler/metrics")
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}
