package helm_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"akri.sh/akri/charts"
)

// TestAkriConfigurations renders values of Akri's chart, and compares the Configurations
// with those that Akri's chart renders, which testdata/akri has.
func TestAkriConfigurations(t *testing.T) {
	files, err := filepath.Glob("testdata/akri/*.values.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".values.yaml")
		t.Run(name, func(t *testing.T) {
			rendered := render(t, read(t, file))
			for _, want := range objects(t, read(t, strings.Replace(file, ".values.", ".want.", 1))) {
				got := rendered[fmt.Sprintf("Configuration akri-system/%v", want["metadata"].(object)["name"])]
				if got == nil {
					t.Fatalf("no such Configuration in %v", keysOf(rendered))
				}
				delete(got["metadata"].(object), "labels")
				delete(got["metadata"].(object), "namespace")
				delete(got["metadata"].(object), "annotations")
				parseDetails(t, got)
				parseDetails(t, want)
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%v differs:\n%s", want["metadata"], difference(t, got, want))
				}
			}
		})
	}
}

// parseDetails replaces the text for the handler by what it means.
func parseDetails(t *testing.T, configuration object) {
	t.Helper()
	handler := configuration["spec"].(object)["discoveryHandler"].(object)
	var details any
	if err := yaml.Unmarshal([]byte(handler["discoveryDetails"].(string)), &details); err != nil {
		t.Fatal(err)
	}
	handler["discoveryDetails"] = details
}

// TestAkriHandlers checks what values of Akri's chart install besides Configurations.
func TestAkriHandlers(t *testing.T) {
	for name, test := range map[string]struct {
		values  string
		want    []string // objects that are rendered
		without []string
		texts   map[string]string // what an object contains
	}{
		"a handler": {
			values:  read(t, "testdata/akri/udev.values.yaml"),
			want:    []string{"DaemonSet akri-system/akri-udev-discovery"},
			without: []string{"DaemonSet akri-system/akri-onvif-discovery"},
		},
		"agent.full": {
			values: "agent: {full: true, allowDebugEcho: true}",
			want: []string{
				"DaemonSet akri-system/akri-udev-discovery", "DaemonSet akri-system/akri-onvif-discovery",
				"DaemonSet akri-system/akri-opcua-discovery", "DaemonSet akri-system/akri-debug-echo-discovery",
			},
			without: []string{"DaemonSet akri-system/akri-mqtt-discovery"},
		},
		"a handler of one's own": {
			values: read(t, "testdata/akri/custom.values.yaml"),
			texts:  map[string]string{"DaemonSet akri-system/http-discovery": "image: example.com/http-handler:latest"},
		},
		"its security context": {
			values: "custom: {discovery: {enabled: true, image: {repository: a}, securityContext: {capabilities: {add: [NET_RAW]}}}}",
			texts: map[string]string{
				"DaemonSet akri-system/akri-custom-discovery": "add:\n            - NET_RAW\n            drop:\n            - ALL",
			},
		},
		"local devices of debug echo": {
			values: read(t, "testdata/akri/debug-echo-job.values.yaml"),
			texts:  map[string]string{"DaemonSet akri-system/akri-debug-echo-discovery": `value: "false"`},
		},
		"directories of the node": {
			values: `
agent:
  host:
    discoveryHandlers: /opt/akri
    kubeletDevicePlugins: /data/device-plugins
    kubeletPodResources: /data/kubelet/pod-resources
udev: {discovery: {enabled: true, host: {udev: /host/udev}}}
`,
			texts: map[string]string{
				"DaemonSet akri-system/akri-agent":          "path: /data/kubelet/plugins_registry",
				"DaemonSet akri-system/akri-udev-discovery": "path: /host/udev",
			},
		},
		"MicroK8s": {
			values: "kubernetesDistro: microk8s",
			texts:  map[string]string{"DaemonSet akri-system/akri-agent": "path: /var/snap/microk8s/common/var/lib/kubelet/pod-resources"},
		},
		"resources and nodes": {
			values: `
agent: {nodeSelectors: {zone: edge}, resources: {memoryLimit: 300Mi}}
controller: {onlyOnControlPlane: true}
`,
			texts: map[string]string{
				"DaemonSet akri-system/akri-agent":       "memory: 300Mi",
				"Deployment akri-system/akri-controller": `node-role.kubernetes.io/control-plane: ""`,
			},
		},
		"the webhook is off": {
			values: "webhookConfiguration: {enabled: false}",
			without: []string{
				"Deployment akri-system/akri-webhook", "ValidatingWebhookConfiguration /akri-configurations",
				"ServiceAccount akri-system/akri-webhook", "ClusterRole /akri-webhook", "ClusterRoleBinding /akri-webhook",
				"ClusterRoleBinding /akri-webhook-dry-run", "Role akri-system/akri-webhook", "RoleBinding akri-system/akri-webhook",
			},
		},
		"Prometheus": {
			values: "prometheus: {enabled: true, port: 9090}",
			want:   []string{"PodMonitor akri-system/akri"},
			texts: map[string]string{
				"DaemonSet akri-system/akri-agent":       "--metrics-bind-address=:9090",
				"Deployment akri-system/akri-controller": "--metrics-bind-address=:9090",
				"Deployment akri-system/akri-webhook":    "--metrics-bind-address=:9090",
			},
		},
		"pull secrets": {
			values: "imagePullSecrets: [{name: registry}]",
			texts:  map[string]string{"DaemonSet akri-system/akri-agent": "- name: registry"},
		},
		"no RBAC": {
			values:  "rbac: {enabled: false}",
			without: []string{"ClusterRole /akri-controller", "ClusterRoleBinding /akri-agent"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rendered := render(t, test.values)
			for _, id := range test.want {
				if rendered[id] == nil {
					t.Errorf("no %s in %v", id, keysOf(rendered))
				}
			}
			for _, id := range test.without {
				if rendered[id] != nil {
					t.Errorf("%s is rendered", id)
				}
			}
			for id, part := range test.texts {
				if rendered[id] == nil || !strings.Contains(text(t, rendered[id]), part) {
					t.Errorf("%s does not contain %q:\n%s", id, part, text(t, rendered[id]))
				}
			}
		})
	}
}

// TestAkriDefaults renders a file with all keys of Akri's chart, and their defaults
// there, as people write them with helm show values: nothing changes.
func TestAkriDefaults(t *testing.T) {
	values := parse(t, chartFile(t, "files/akri.yaml"))
	delete(values, "gone")
	// Akri's default is to tolerate the control plane, ours is not to.
	set(values, []string{"controller", "allowOnControlPlane"}, false)
	set(values, []string{"webhookConfiguration", "allowOnControlPlane"}, false)
	compare(t, render(t, text(t, values)), render(t, ""))
}

// TestAkriKeyOfWebhook checks that Akri's key and ours leave out the same objects.
func TestAkriKeyOfWebhook(t *testing.T) {
	compare(t, render(t, "webhookConfiguration: {enabled: false}"), render(t, "webhook: {enabled: false}"))
}

// TestGone checks that keys without a meaning are refused, with the page that says what to do.
func TestGone(t *testing.T) {
	const page = ": not keys of this chart. If they are keys of Akri's chart, docs/migrate-from-akri.md#keys-of-akris-chart"
	for values, want := range map[string]string{
		"{coap: {configuration: {enabled: true}}, agent: {host: {crictl: /x}}}":                  "coap, agent.host.crictl" + page,
		"udev: {configuration: {brokerPod: {image: {repository: 'example.com:5000/video:v1'}}}}": "brokerPod.image.repository: it has a tag",
		"onvif: {configuration: {brokerJob: {image: {repository: 'a/b@sha256:0123'}}}}":          "brokerJob.image.repository: it has a tag",
		"custom: {discovery: {image: {repository: 'a:1'}}}":                                      "custom.discovery.image.repository: it has",
		"opcua: {configuration: {brokerPod: {image: {repository: 'example.com:5000/opc'}}}}":     "",
		"useLatestContainers: true":                            "useLatestContainers" + page,
		"agent: {image: {repository: example.com/agent}}":      "agent.image" + page,
		"udev: {enabled: true, udevRules: [a]}":                "udev.enabled, udev.udevRules" + page,
		"onvif: {discovery: {useNetworkConnection: true}}":     "onvif.discovery.useNetworkConnection" + page,
		"webhookConfiguration: {caBundle: TEVUVEVS}":           "webhookConfiguration.caBundle" + page,
		"crds: {version: v1}":                                  "crds.version" + page,
		"udev: {configuration: {enabled: true}}":               "udevRules: at least one rule is required",
		"agent: {host: {kubeletPodResources: /run/pods}}":      "use kubelet.rootDir",
		"handlers: {onvif: {enabled: true, kind: Deployment}}": "handlers.onvif.hostNetwork: say false or true",
		"handlers: {mdns: {enabled: true, kind: Deployment}}":  "handlers.mdns.hostNetwork: say false or true",
		"handlers: {opcua: {enabled: true, kind: Deployment}}": "agent.networkHandlers",
		"custom: {configuration: {enabled: true}}":             "custom.configuration.discoveryHandlerName",
		"prometheus: {endpoint: /metrics}":                     "prometheus.endpoint" + page,
		"{controller: {linuxOnly: false}, useLatestContainers: false, udev: {discovery: {useNetworkConnection: false}}}": "",
	} {
		_, err := release().Render(parse(t, values))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", values, err, want)
		}
	}
}

func set(values object, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		if values[key] == nil {
			values[key] = object{}
		}
		values = values[key].(object)
	}
	values[path[len(path)-1]] = value
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func chartFile(t *testing.T, file string) string {
	t.Helper()
	data, err := fs.ReadFile(charts.Akri, "akri/"+file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func keysOf(all map[string]object) []string {
	var keys []string
	for key := range all {
		keys = append(keys, key)
	}
	return keys
}
