package handlers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/e2e/peers"
	"akri.sh/akri/kubebox/clustertest"
)

// mdnsConfiguration finds web services of one test, and runs a Pod for each.
const mdnsConfiguration = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: web}
spec:
  discoveryHandler:
    name: mdns
    discoveryDetails: |
      services: [%q]
      txt: {"!hidden": ""}
  capacity: 1
  brokerSpec:
    brokerPodSpec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: broker
        image: akri.local/workload:1
        resources: {requests: {"{{PLACEHOLDER}}": "1"}, limits: {"{{PLACEHOLDER}}": "1"}}
`

// announcer is another program's implementation of mDNS, which announces a service for
// each file in a directory.
type announcer struct {
	t   testing.TB
	dir string
	// stop kills it: it cannot say goodbye.
	stop func()
}

// write creates or replaces a file at once, so that the program never reads half of it.
func (a announcer) write(name, text string) time.Time {
	a.t.Helper()
	partial := filepath.Join(a.t.TempDir(), "partial")
	if err := os.WriteFile(partial, []byte(text), 0o644); err != nil {
		a.t.Fatal(err)
	}
	began := time.Now()
	if err := os.Rename(partial, filepath.Join(a.dir, name)); err != nil {
		a.t.Fatal(err)
	}
	return began
}

func (a announcer) remove(name string) time.Time {
	a.t.Helper()
	if err := os.Remove(filepath.Join(a.dir, name)); err != nil {
		a.t.Fatal(err)
	}
	return time.Now()
}

// avahi runs avahi-daemon next to the nodes, without D-Bus.
func (w *world) avahi() announcer {
	w.t.Helper()
	root := peers.Debian(w.t, "avahi-daemon", "libavahi-common3", "libavahi-core7", "libdaemon0", "libexpat1", "libdbus-1-3", "libcap2")
	etc := w.t.TempDir()
	services := filepath.Join(etc, "avahi", "services")
	if err := os.MkdirAll(services, 0o755); err != nil {
		w.t.Fatal(err)
	}
	for name, text := range map[string]string{
		"passwd": "root:x:0:0::/root:/bin/sh\navahi:x:105:105::/:/bin/false\n",
		"group":  "root:x:0:\navahi:x:105:\n",
		"avahi/avahi-daemon.conf": "[server]\nhost-name=gadget\nallow-interfaces=br0\nenable-dbus=no\nuse-ipv6=no\n" +
			"ratelimit-interval-usec=1000000\nratelimit-burst=1000\n[publish]\npublish-hinfo=no\npublish-workstation=no\n",
	} {
		if err := os.WriteFile(filepath.Join(etc, name), []byte(text), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	// avahi-daemon has fixed paths: it gets an /etc and a /run of its own.
	script := `mount --bind "$1" /etc && mount -t tmpfs none /run && mkdir /run/avahi-daemon &&
		exec "$2" --no-drop-root --no-chroot --no-rlimits`
	stop := w.peer(peers.Libraries(root), "unshare", "--mount", "sh", "-c", script, "sh", etc, filepath.Join(root, "usr/sbin/avahi-daemon"))
	return announcer{w.t, services, stop}
}

// avahiService is a file for avahi-daemon.
func avahiService(name, kind string, port int, texts ...string) string {
	records := ""
	for _, text := range texts {
		records += "<txt-record>" + text + "</txt-record>"
	}
	return fmt.Sprintf(`<?xml version="1.0" standalone='no'?><!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group><name>%s</name><service><type>%s</type><port>%d</port>%s</service></service-group>`, name, kind, port, records)
}

// zeroconf runs python-zeroconf at bridgeAddress.
func (w *world) zeroconf() announcer {
	w.t.Helper()
	env := peers.Python(w.t, "zeroconf==0.154.0")
	script, err := filepath.Abs("testdata/zeroconf_peer.py")
	if err != nil {
		w.t.Fatal(err)
	}
	dir := w.t.TempDir()
	return announcer{w.t, dir, w.peer(env, "python3", script, dir, bridgeAddress)}
}

// zeroconfService is a file for zeroconf_peer.py. A ttl of 0 means the usual ones.
func zeroconfService(t testing.TB, kind string, port, ttl int, properties map[string]string) string {
	t.Helper()
	fields := map[string]any{"type": kind, "port": port, "address": bridgeAddress, "properties": properties}
	if ttl > 0 {
		fields["ttl"] = ttl
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestMDNS follows a service that avahi announces from its announcement to its goodbye.
func TestMDNS(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t, "mdns")
	avahi := w.avahi()
	avahi.write("first.service", avahiService("First 1.0", "_akri-a._tcp", 8080, "model=X2"))
	w.apply(fmt.Sprintf(mdnsConfiguration, "_akri-a._tcp"))
	first := w.await("MDNS_INSTANCE", "First 1.0")

	added := avahi.write("camera.service", avahiService("Camera", "_akri-a._tcp", 8081, "model=X2", "path=/view"))
	avahi.write("hidden.service", avahiService("Hidden", "_akri-a._tcp", 8082, "hidden"))
	found := w.await("MDNS_INSTANCE", "First 1.0", "Camera")
	t.Logf("a service is an Instance %v after avahi has its file", time.Since(added))
	var name, uid string
	for _, i := range found {
		if i.Spec.BrokerProperties["MDNS_INSTANCE"] == "Camera" {
			name, uid = i.Metadata.Name, i.Metadata.UID
		}
	}
	w.awaitProperties(name, map[string]string{
		"MDNS_SERVICE": "_akri-a._tcp", "MDNS_HOST": "gadget.local", "MDNS_PORT": "8081", "MDNS_ADDRESS": bridgeAddress,
		"MDNS_ADDRESSES": bridgeAddress, "MDNS_TXT_MODEL": "X2", "MDNS_TXT_PATH": "/view",
	})
	w.eventually("both nodes see the service", func() string {
		if nodes := w.instances()[name].Spec.Nodes; len(nodes) != 2 {
			return fmt.Sprint(nodes)
		}
		return ""
	})
	w.eventually("the broker shows the service", func() string {
		log, err := w.Kubectl(w.ctx, "--namespace", w.namespace, "logs", "--tail=-1", "--selector=akri.sh/instance="+name)
		if err != nil {
			return err.Error()
		}
		for _, want := range []string{"MDNS_ADDRESS=" + bridgeAddress, "MDNS_PORT=8081", "MDNS_TXT_MODEL=X2", "MDNS_INSTANCE=Camera"} {
			if !strings.Contains(string(log), want) {
				return fmt.Sprintf("%s is not in its log:\n%s", want, log)
			}
		}
		return ""
	})

	changed := avahi.write("camera.service", avahiService("Camera", "_akri-a._tcp", 8083, "model=X3", "path=/view"))
	w.awaitProperties(name, map[string]string{"MDNS_PORT": "8083", "MDNS_TXT_MODEL": "X3"})
	t.Logf("a change is in the Instance after %v", time.Since(changed))
	if now := w.instances()[name].Metadata.UID; now != uid || uid == "" {
		t.Errorf("the Instance was created again: UID %s, before %s", now, uid)
	}

	removed := avahi.remove("camera.service")
	left := w.await("MDNS_INSTANCE", "First 1.0")
	t.Logf("an Instance is gone %v after avahi's file", time.Since(removed))
	for each, i := range left {
		if i.Metadata.UID != first[each].Metadata.UID {
			t.Errorf("%s was created again", each)
		}
	}
}

// awaitProperties waits until an Instance has these properties, among others.
func (w *world) awaitProperties(name string, want map[string]string) {
	w.t.Helper()
	w.eventually("properties of "+name, func() string {
		properties := w.instances()[name].Spec.BrokerProperties
		for key, value := range want {
			if properties[key] != value {
				return fmt.Sprintf("%s is %q, want %q", key, properties[key], value)
			}
		}
		return ""
	})
}

// TestMDNSConflictsAndLostGoodbyes uses python-zeroconf next to avahi: a name that is taken
// is changed, and devices that are killed disappear after their time to live.
func TestMDNSConflictsAndLostGoodbyes(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t, "mdns")
	avahi, zeroconf, killed := w.avahi(), w.zeroconf(), w.zeroconf()
	avahi.write("gadget.service", avahiService("Gadget", "_akri-b._tcp", 8080))
	w.apply(fmt.Sprintf(mdnsConfiguration, "_akri-b._tcp"))
	first := w.await("MDNS_INSTANCE", "Gadget")

	killed.write("Mortal.json", zeroconfService(t, "_akri-b._tcp", 8082, 5, nil))
	w.await("MDNS_INSTANCE", "Gadget", "Mortal")
	killed.stop()
	died := time.Now()

	zeroconf.write("Gadget.json", zeroconfService(t, "_akri-b._tcp", 8081, 0, map[string]string{"Key": "value"}))
	found := w.await("MDNS_INSTANCE", "Gadget", "Gadget-2", "Mortal")
	zeroconf.remove("Gadget.json")
	w.await("MDNS_INSTANCE", "Gadget", "Mortal")
	for name, i := range found {
		if i.Spec.BrokerProperties["MDNS_INSTANCE"] == "Gadget-2" && i.Spec.BrokerProperties["MDNS_TXT_KEY"] != "value" {
			t.Errorf("%s has the properties %v", name, i.Spec.BrokerProperties)
		}
	}
	left := w.await("MDNS_INSTANCE", "Gadget")
	t.Logf("a service with a time to live of 5 s is gone %v after it was killed", time.Since(died))
	if time.Since(died) < 30*time.Second {
		t.Error("it was not verified")
	}
	for name, i := range left {
		if i.Metadata.UID != first[name].Metadata.UID {
			t.Errorf("%s was created again", name)
		}
	}
}
