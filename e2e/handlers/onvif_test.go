package handlers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/e2e/peers"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
	"akri.sh/akri/kubebox/image"
)

const (
	ipycamUUID      = "5f5a69c2-e0ae-504f-829b-00fcdab169cc"
	wsdiscoveryUUID = "6a67158b-42b1-400b-8afe-1bec9a5d7909"
	cameraPassword  = "pass-of-the-gate"
	propertyUUID    = "ONVIF_DEVICE_UUID"

	ipycamURL      = "http://" + bridgeAddress + ":8101/onvif/device_service"
	wsdiscoveryURL = "http://" + bridgeAddress + ":8102/onvif/device_service"
)

// cameras is a world with the handler onvif.
type cameras struct{ *world }

// script returns the path of a program in testdata.
func (c cameras) script(name string) string {
	c.t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", "onvif", name))
	if err != nil {
		c.t.Fatal(err)
	}
	return path
}

// ipycam starts a virtual camera. Its discovery, services and authentication are those of
// PyPI's ipycam.
func (c cameras) ipycam() (kill func()) {
	c.t.Helper()
	// Without OpenCV and numpy, which only make pictures.
	env := peers.Python(c.t, "--no-deps", "ipycam==1.3.0")
	return c.peer(env, "python3", c.script("virtual_camera.py"), bridgeAddress, "8101", ipycamUUID, "operator", cameraPassword)
}

// wsdiscovery starts a device that is published with PyPI's WSDiscovery. It says Bye when
// bye is called, and ends when kill is called.
func (c cameras) wsdiscovery() (bye, kill func()) {
	c.t.Helper()
	env := peers.Python(c.t, "WSDiscovery==2.1.2")
	file := filepath.Join(c.t.TempDir(), "bye")
	kill = c.peer(env, "python3", c.script("published_device.py"), bridgeAddress, "8102", wsdiscoveryUUID, file)
	return func() {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			c.t.Fatal(err)
		}
	}, kill
}

// wsdd starts Debian's wsdd, which makes a computer visible to Windows. It answers probes
// of WS-Discovery, but is no camera.
func (c cameras) wsdd() {
	c.t.Helper()
	dir := peers.Debian(c.t, "wsdd")
	c.peer(nil, "python3", filepath.Join(dir, "usr", "sbin", "wsdd"), "--ipv4only", "--hostname", "computer", "--interface", "br0")
}

// loadBroker loads an image of busybox, whose wget fetches pictures.
func (c cameras) loadBroker() {
	c.t.Helper()
	dir := peers.Debian(c.t, "busybox-static")
	archive := filepath.Join(c.t.TempDir(), "busybox.tar")
	busybox := filepath.Join(dir, "bin", "busybox")
	err := image.Write(archive, image.Image{
		Name: "akri.local/busybox:1", Entrypoint: []string{"/bin/sh"},
		Files: map[string]string{"/bin/sh": busybox, "/bin/wget": busybox, "/bin/sleep": busybox},
	})
	if err == nil {
		err = c.Load(c.ctx, archive)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// configure applies a Secret with the credentials, and a Configuration.
func (c cameras) configure(details string) {
	c.t.Helper()
	c.apply(fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: credentials}
stringData: {username: operator, password: %s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: credentials}
rules:
- {apiGroups: [""], resources: [secrets], resourceNames: [credentials], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: credentials}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: credentials}
subjects: [{kind: ServiceAccount, name: akri-agent, namespace: akri-system}]
`, cameraPassword))
	c.apply(fmt.Sprintf(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: %s}
spec:
  discoveryHandler:
    name: onvif
    discoveryDetails: |
      %s
    discoveryProperties:
    - {name: username_default, valueFrom: {secretKeyRef: {name: credentials, key: username}}}
    - {name: password_default, valueFrom: {secretKeyRef: {name: credentials, key: password}}}
  capacity: 1
  instanceBrokerResources:
  - apiVersion: v1
    kind: Pod
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec:
      terminationGracePeriodSeconds: 1
      restartPolicy: OnFailure
      containers:
      - name: broker
        image: akri.local/busybox:1
        args:
        - -c
        - |
          test -n "$ONVIF_SNAPSHOT_URI" || { echo "no picture of $ONVIF_DEVICE_SERVICE_URL"; exec sleep 3600; }
          wget -q -O - "http://$username:$password@${ONVIF_SNAPSHOT_URI#http://}" && echo && exec sleep 3600
        envFrom: [{secretRef: {name: credentials}}]
        resources: {limits: {"{{RESOURCE_NAME}}": "1"}}
`, c.namespace, details))
}

// quickCameras has short intervals, so that tests take seconds.
const quickCameras = "{discoveryTimeoutSeconds: 1, intervalSeconds: 2, misses: 2, interfaces: [eth0], details: [information, streams]}"

// TestONVIF follows a camera of other people's making, from the network to a broker that
// fetches a picture, and until it is gone.
func TestONVIF(t *testing.T) {
	clustertest.Full(t)
	c := cameras{newWorld(t, "onvif")}
	c.loadBroker()
	c.wsdd()
	kill := c.ipycam()
	c.configure(quickCameras)

	found := c.await(propertyUUID, ipycamUUID)
	for name, i := range found {
		p := i.Spec.BrokerProperties
		for property, want := range map[string]string{
			"ONVIF_DEVICE_SERVICE_URL": ipycamURL, "ONVIF_DEVICE_IP_ADDRESS": bridgeAddress,
			"ONVIF_DEVICE_MANUFACTURER": "PythonCam", "ONVIF_DEVICE_MODEL": "VirtualCam-1", "ONVIF_DEVICE_SERIAL_NUMBER": "PY-000001",
			"ONVIF_SNAPSHOT_URI": "http://" + bridgeAddress + ":8101/snapshot.jpg",
		} {
			if p[property] != want {
				t.Errorf("%s is %q, want %q", property, p[property], want)
			}
		}
		if !strings.HasPrefix(p["ONVIF_STREAM_URI"], "rtsp://"+bridgeAddress+":8554/") || strings.Contains(fmt.Sprint(p), cameraPassword) {
			t.Errorf("the properties are %v", p)
		}
		c.eventually("the broker's picture", func() string {
			log, err := c.Kubectl(c.ctx, "--namespace", c.namespace, "logs", name)
			if err != nil || !strings.Contains(string(log), "picture of the gate") {
				return fmt.Sprintf("%s%v", log, err)
			}
			return ""
		})
	}
	c.eventually("both nodes", func() string {
		for _, i := range c.instances() {
			if len(i.Spec.Nodes) != 2 {
				return fmt.Sprintf("the nodes are %v", i.Spec.Nodes)
			}
		}
		return ""
	})

	began := time.Now()
	kill()
	c.await(propertyUUID)
	t.Logf("gone %v after its process was killed, with two probes of 2 s", time.Since(began))
}

// TestONVIFProbe compares our probe with Akri's, whose type has a prefix that is not
// bound: a conforming device does not answer that.
func TestONVIFProbe(t *testing.T) {
	clustertest.Full(t)
	c := cameras{newWorld(t, "onvif")}
	// With so many misses, only Bye makes it disappear before the test ends.
	c.configure("{discoveryTimeoutSeconds: 1, intervalSeconds: 10, misses: 100, interfaces: [eth0]}")
	c.await(propertyUUID)
	began := time.Now()
	bye, _ := c.wsdiscovery()
	c.await(propertyUUID, wsdiscoveryUUID)
	t.Logf("published %v after its program was started", time.Since(began))
	if url := theOnly(t, c.instances()).Spec.BrokerProperties["ONVIF_DEVICE_SERVICE_URL"]; url != wsdiscoveryURL {
		t.Errorf("the URL is %q", url)
	}
	const akri = `<?xml version="1.0" encoding="utf-8"?><s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Header ` +
		`xmlns:w="http://schemas.xmlsoap.org/ws/2004/08/addressing"><w:MessageID>uuid:%s</w:MessageID>` +
		`<w:To>urn:schemas-xmlsoap-org:ws:2005:04:discovery</w:To>` +
		`<w:Action>http://schemas.xmlsoap.org/ws/2005/04/discovery/Probe</w:Action></s:Header>` +
		`<s:Body xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery"%s><d:Probe><d:Types>netwsdl:NetworkVideoTransmitter</d:Types>` +
		`</d:Probe></s:Body></s:Envelope>`
	if answers := c.probe(fmt.Sprintf(akri, "11111111-1111-4111-8111-111111111111", "")); strings.Contains(answers, wsdiscoveryURL) {
		t.Errorf("Akri's probe finds the device: the comparison is void\n%s", answers)
	}
	bound := fmt.Sprintf(akri, "22222222-2222-4222-8222-222222222222", ` xmlns:netwsdl="http://www.onvif.org/ver10/network/wsdl"`)
	if answers := c.probe(bound); !strings.Contains(answers, wsdiscoveryURL) {
		t.Errorf("the same probe with a bound prefix does not find the device either\n%s", answers)
	}
	began = time.Now()
	bye()
	c.await(propertyUUID)
	t.Logf("gone %v after Bye", time.Since(began))
}

// TestONVIFLatency measures the time from the start of a camera's program, which says Hello
// within half a second, to the Instance that a client of the API server sees. No probe is
// sent meanwhile.
func TestONVIFLatency(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t, "onvif")
	w.loadExamples()
	camera := filepath.Join(install.programs.Dir, "examples", "devices", "camera")
	w.apply(fmt.Sprintf(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: %s}
spec:
  discoveryHandler:
    name: onvif
    discoveryDetails: "{discoveryTimeoutSeconds: 1, intervalSeconds: 3600, interfaces: [eth0], id: uuid}"
`, w.unique("hello")))
	plugIn := func(uuid string) (unplug func()) {
		return w.peer(nil, camera, "--address="+bridgeAddress, "--port=8893", "--uuid="+uuid)
	}
	// Both nodes have sent their first list when they have found a camera.
	unplug := plugIn("7c5a1f0e-0000-4000-8000-ffffffffffff")
	w.eventually("both nodes", func() string { return state(w.instances()).complaint() })
	unplug()
	added := w.watchInstances(propertyUUID)
	var latencies []time.Duration
	for i := range w.rounds() {
		uuid := fmt.Sprintf("7c5a1f0e-0000-4000-8000-%012d", i)
		began := time.Now()
		unplug := plugIn(uuid)
		latencies = append(latencies, w.awaitSighting(added, uuid, began))
		unplug() // its Instance stays, as no probe misses it
	}
	if median := w.logLatencies("from the start of a camera to its Instance", latencies); median > 1500*time.Millisecond {
		t.Errorf("half of the Instances took longer than 1.5 s")
	}
	w.checkMemory("onvif")
}

// probe sends a message to the multicast group and returns the answers.
func (c cameras) probe(message string) string {
	c.t.Helper()
	var output bytes.Buffer
	err := c.Exec(c.ctx, cluster.Command{
		Node: c.Nodes()[0], Args: []string{"python3", c.script("probe.py"), "10.99.0.11"},
		Stdin: strings.NewReader(message), Stdout: &output, Stderr: &output,
	})
	if err != nil {
		c.t.Fatalf("%v\n%s", err, output.String())
	}
	return output.String()
}

// theOnly returns the only Instance.
func theOnly(t testing.TB, all map[string]instanceView) instanceView {
	t.Helper()
	if len(all) != 1 {
		t.Fatalf("%d Instances, want 1", len(all))
	}
	for _, i := range all {
		return i
	}
	panic("unreachable")
}
