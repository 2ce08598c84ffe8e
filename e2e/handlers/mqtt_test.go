package handlers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"akri.sh/akri/e2e/peers"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

const (
	mosquittoPort     = "1883"
	mosquittoPassword = "e2e-mqtt-password"
)

// mosquitto is the broker mosquitto from Debian, at bridgeAddress in the cluster's network.
type mosquitto struct {
	w      *world
	dir    string // Debian's files
	config string
	// pid is the file with the broker's process ID, as a program in its namespaces sees it.
	pid  string
	stop func()
}

// startMosquitto starts a broker with the user "akri", who may only read what the
// documentation requires, and the user "device", who may do everything.
func startMosquitto(w *world) *mosquitto {
	w.t.Helper()
	m := &mosquitto{
		w: w, dir: peers.Debian(w.t, "mosquitto", "mosquitto-clients", "libmosquitto1", "libcjson1", "libdlt2", "libwrap0"),
	}
	files := w.t.TempDir()
	passwords := filepath.Join(files, "passwords")
	m.write(passwords, "")
	for _, user := range []string{"akri", "device"} {
		command := exec.CommandContext(w.ctx, filepath.Join(m.dir, "usr/bin/mosquitto_passwd"), "-b", passwords, user, mosquittoPassword)
		command.Env = append(os.Environ(), peers.Libraries(m.dir)...)
		if output, err := command.CombinedOutput(); err != nil {
			w.t.Fatalf("mosquitto_passwd: %v: %s", err, output)
		}
	}
	rules := filepath.Join(files, "rules")
	m.write(rules, "user akri\ntopic read homie/#\ntopic read homeassistant/#\ntopic read boiler/#\n\n"+
		"user device\ntopic readwrite #\n")
	m.config, m.pid = filepath.Join(files, "mosquitto.conf"), filepath.Join(files, "pid")
	m.write(m.config, fmt.Sprintf("listener %s %s\nuser root\nallow_anonymous false\npassword_file %s\nacl_file %s\npersistence true\n"+
		"persistence_location %s/\npid_file %s\n", mosquittoPort, bridgeAddress, passwords, rules, files, m.pid))
	m.start()
	m.retain("ready", "yes")
	return m
}

func (m *mosquitto) write(file, text string) {
	m.w.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		m.w.t.Fatal(err)
	}
}

func (m *mosquitto) start() {
	m.stop = m.w.peer(peers.Libraries(m.dir), filepath.Join(m.dir, "usr/sbin/mosquitto"), "-c", m.config)
}

// restart stops the broker as an operator does, so that it stores its retained messages and
// the last wills of its clients, and starts it again.
func (m *mosquitto) restart() {
	m.w.t.Helper()
	signal := func(name string) error {
		return m.w.Exec(m.w.ctx, cluster.Command{Args: []string{"sh", "-c", "kill -" + name + " $(cat " + m.pid + ")"}})
	}
	if err := signal("TERM"); err != nil {
		m.w.t.Fatal(err)
	}
	m.w.eventually("the broker ends", func() string {
		if signal("0") == nil {
			return "it is running"
		}
		return ""
	})
	m.stop()
	m.start()
}

// client returns the command line of a client program.
func (m *mosquitto) client(program string, arguments ...string) []string {
	return append([]string{
		filepath.Join(m.dir, "usr/bin", program), "-h", bridgeAddress, "-p", mosquittoPort, "-u", "device", "-P", mosquittoPassword,
	}, arguments...)
}

// retain publishes a retained message as a device. It waits for the broker.
func (m *mosquitto) retain(topic, payload string) {
	m.w.t.Helper()
	arguments := m.client("mosquitto_pub", "-q", "1", "-r", "-t", topic, "-m", payload)
	if payload == "" {
		arguments = m.client("mosquitto_pub", "-q", "1", "-r", "-t", topic, "-n")
	}
	m.w.eventually("publish "+topic, func() string {
		if err := m.w.Exec(m.w.ctx, cluster.Command{Args: arguments, Env: peers.Libraries(m.dir)}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// connect keeps a device connected, with a last will, until kill is called.
func (m *mosquitto) connect(willTopic, will string) (kill func()) {
	return m.w.peer(peers.Libraries(m.dir), m.client("mosquitto_sub", "-t", "none", "--will-topic", willTopic, "--will-payload", will,
		"--will-retain", "--will-qos", "1")...)
}

// mqttAccess is a Secret with the password, and permission for the agents to read it.
const mqttAccess = `
apiVersion: v1
kind: Secret
metadata: {name: broker}
stringData: {password: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: broker}
rules:
- {apiGroups: [""], resources: [secrets], resourceNames: [broker], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: broker}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: broker}
subjects: [{kind: ServiceAccount, name: akri-agent, namespace: akri-system}]
`

const mqttConfiguration = `
---
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: %[1]s}
spec:
  discoveryHandler:
    name: mqtt
    discoveryDetails: |
      broker: {url: "tcp://%[2]s"}
      convention: %[3]s
    discoveryProperties:
    - {name: username, value: akri}
    - name: password
      valueFrom: {secretKeyRef: {name: broker, namespace: %[4]s, key: password}}
  instanceBrokerResources:
  - apiVersion: v1
    kind: Pod
    metadata: {name: "{{ INSTANCE_NAME }}"}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: broker
        image: akri.local/workload:1
        resources: {limits: {"{{ RESOURCE_NAME }}": "1"}}
`

// Devices at a broker with passwords become Instances, whose Pods know the device's topics.
// A restart of the broker changes nothing, and a last will ends a device.
func TestMQTT(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t, "mqtt")
	m := startMosquitto(w)
	kill := m.connect("homie/pump/$state", "lost")
	m.retain("homie/pump/$homie", "4.0.0")
	m.retain("homie/pump/$name", "Pump 1")
	m.retain("homie/pump/$state", "ready")
	m.retain("homie/5/lamp/$description", `{"homie":"5.0","version":1,"name":"Lamp"}`)
	m.retain("homie/5/lamp/$state", "ready")
	m.retain("homeassistant/sensor/boiler/config", `{"avty_t":"boiler/status","dev":{"ids":["b-1"],"name":"Boiler","mf":"Acme"}}`)
	m.retain("boiler/status", "online")

	address := bridgeAddress + ":" + mosquittoPort
	w.apply(fmt.Sprintf(mqttAccess, mosquittoPassword) + fmt.Sprintf(mqttConfiguration, "homie", address, "homie", w.namespace) +
		fmt.Sprintf(mqttConfiguration, "ha", address, "homeAssistant", w.namespace))
	before := w.await("MQTT_DEVICE_NAME", "Boiler", "Lamp", "Pump 1")
	names := map[string]string{}
	for name, i := range before {
		names[i.Spec.BrokerProperties["MQTT_DEVICE_ID"]] = name
		w.eventually("both nodes of "+name, func() string {
			if nodes := w.instances()[name].Spec.Nodes; len(nodes) != 2 {
				return fmt.Sprintf("nodes %q", nodes)
			}
			return ""
		})
	}
	w.eventually("the environment of the pump's Pod", func() string {
		environment, err := w.Kubectl(w.ctx, "--namespace", w.namespace, "logs", names["pump"])
		for _, want := range []string{"MQTT_BROKER_URL=tcp://" + address, "MQTT_BASE_TOPIC=homie/pump", "MQTT_DEVICE_ID=pump"} {
			if err != nil || !strings.Contains(string(environment), want) {
				return fmt.Sprintf("%v, no %s in\n%s", err, want, environment)
			}
		}
		if strings.Contains(string(environment), mosquittoPassword) {
			t.Error("the password is in the environment of the Pod")
		}
		return ""
	})

	// The broker restarts, and publishes the last will of the pump, which connects again later.
	m.restart()
	m.retain("homie/5/new/$description", `{"name":"New"}`)
	m.retain("homie/5/new/$state", "ready")
	w.await("MQTT_DEVICE_NAME", "Boiler", "Lamp", "New", "Pump 1")
	kill()
	kill = m.connect("homie/pump/$state", "lost")
	m.retain("homie/pump/$state", "ready")
	after := w.await("MQTT_DEVICE_NAME", "Boiler", "Lamp", "New", "Pump 1")
	for name, i := range before {
		if after[name].Metadata.UID != i.Metadata.UID {
			t.Errorf("Instance %s was created again when the broker restarted", name)
		}
	}

	m.retain("homie/5/new/$state", "")
	w.await("MQTT_DEVICE_NAME", "Boiler", "Lamp", "Pump 1")
	m.retain("boiler/status", "offline")
	kill()
	w.await("MQTT_DEVICE_NAME", "Lamp")
	w.eventually("the end of the pump's Pod", func() string {
		if pods := w.kubectl("get", "pods", "--output=name"); strings.Contains(pods, names["pump"]) {
			return pods
		}
		return ""
	})
}

// A wrong password is reported in the status. Correcting the Secret is enough.
func TestMQTTRefused(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t, "mqtt")
	m := startMosquitto(w)
	m.retain("homie/pump/$homie", "4.0.0")
	m.retain("homie/pump/$state", "ready")
	w.apply(fmt.Sprintf(mqttAccess, "wrong") +
		fmt.Sprintf(mqttConfiguration, "homie", bridgeAddress+":"+mosquittoPort, "homie", w.namespace))
	w.eventually("a failure in the status", func() string {
		status := w.kubectl("get", "configuration", "homie", "--output=jsonpath={.status.discoveryFailures}")
		if strings.Contains(status, "wrong") {
			t.Fatalf("the status has the password: %s", status)
		}
		if !strings.Contains(status, "refuses") {
			return "discoveryFailures: " + status
		}
		return ""
	})
	w.apply(fmt.Sprintf(mqttAccess, mosquittoPassword))
	w.await("MQTT_DEVICE_ID", "pump")
}
