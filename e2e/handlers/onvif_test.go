package handlers

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/e2e/peers"
	"akri.sh/akri/kubebox/clustertest"
	"akri.sh/akri/kubebox/image"
)

const (
	ipycamUUID     = "5f5a69c2-e0ae-504f-829b-00fcdab169cc"
	cameraPassword = "pass-of-the-gate"
	propertyUUID   = "ONVIF_DEVICE_UUID"
	ipycamURL      = "http://" + bridgeAddress + ":8101/onvif/device_service"
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
