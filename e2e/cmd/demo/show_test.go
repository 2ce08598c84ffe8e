package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestUnplugging checks that the demo prints a command for each device that unplugs it.
func TestUnplugging(t *testing.T) {
	const admin = "kubectl --kubeconfig " + string(defaultDir) + "/kubeconfig"
	target := demoTarget{hasNodes: true, devices: "devices", availability: "/run/demo/debug-echo"}
	const camera, plc = " -n devices scale deployment/camera-hall --replicas=", " -n devices scale deployment/plc --replicas="
	want := "Unplug a device, and watch its objects go:\n" +
		"  " + admin + camera + "0\n" +
		"  " + admin + plc + "0\n" +
		"  echo OFFLINE > /run/demo/debug-echo\n" +
		"Plug it in again:\n" +
		"  " + admin + camera + "1\n" +
		"  " + admin + plc + "1\n" +
		"  echo ONLINE > /run/demo/debug-echo\n"
	if got := target.unplugging(admin); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	target = demoTarget{hasNodes: true, devices: "akri-demo"} // somebody's cluster: debugEcho's file is on its nodes
	if got := target.unplugging("kubectl --context c"); strings.Count(got, "  kubectl --context c -n akri-demo scale ") != 4 ||
		strings.Contains(got, "echo") {
		t.Errorf("in another cluster: got\n%s", got)
	}
}

// TestUnpluggedDevices checks that the Deployments that the commands scale are in the
// manifests of the devices.
func TestUnpluggedDevices(t *testing.T) {
	for _, p := range others {
		var manifests strings.Builder
		for _, file := range p.Manifests {
			text, err := os.ReadFile("../../../" + file)
			if err != nil {
				t.Fatal(err)
			}
			manifests.Write(text)
		}
		deployment := regexp.MustCompile(`(?m)^kind: Deployment\nmetadata:\n  name: ` + p.Device + `\n  namespace: devices$`)
		if !deployment.MatchString(manifests.String()) {
			t.Errorf("%v have no Deployment %s", p.Manifests, p.Device)
		}
	}
}

// TestMissingPictures checks that the demo says how to get pictures without nftables, on
// Debian and Fedora, and nothing where there are some.
func TestMissingPictures(t *testing.T) {
	if got := missingPictures(true, defaultDir); got != "" {
		t.Errorf("where Pods reach Services: %q", got)
	}
	got := missingPictures(false, defaultDir)
	for _, want := range []string{"no pictures", "apt-get install nftables", "dnf install nftables", "make demo-down demo"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
}
