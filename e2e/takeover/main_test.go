package takeover

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

const (
	// timeout bounds how long a test waits for a condition. No test passes by timing out.
	timeout = 90 * time.Second

	namespace = "takeover"
	node1     = "node1"
	node2     = "node2"
)

// world is a cluster with two nodes and Akri.
type world struct {
	*cluster.Cluster
	*testing.T
	server string
	client *http.Client
	akri   string // the user that Akri's agents are, or empty: the administrator
}

// newWorldOn installs this project in a cluster with two nodes.
func newWorldOn(t *testing.T, c *cluster.Cluster) *world {
	t.Helper()
	w := &world{Cluster: c, T: t}
	programs, err := akri.Build(t.Context(), os.Stderr)
	if err == nil {
		err = akri.Install(t.Context(), c, programs)
	}
	if err == nil {
		w.server, w.client, err = akri.Connect(c.Kubeconfig())
	}
	if err != nil {
		t.Fatal(err)
	}
	w.kubectl("create", "namespace", namespace)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout) // the test's own context has ended
		defer cancel()
		if t.Failed() {
			t.Log(akri.Evidence(ctx, c, namespace))
		}
	})
	return w
}

// kubectl runs kubectl in the test's namespace and returns its output.
func (w *world) kubectl(arguments ...string) string {
	w.Helper()
	out, err := w.Kubectl(w.Context(), append([]string{"--namespace", namespace}, arguments...)...)
	if err != nil {
		w.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// apply applies a manifest as its author.
func (w *world) apply(manifest string) {
	w.Helper()
	if _, err := w.KubectlInput(w.Context(), []byte(manifest), "--namespace", namespace, "apply", "--server-side", "-f", "-"); err != nil {
		w.Fatal(err)
	}
}

// object has the fields that the tests read, for all kinds.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name              string            `json:"name"`
		UID               string            `json:"uid"`
		Labels            map[string]string `json:"labels"`
		Finalizers        []string          `json:"finalizers"`
		DeletionTimestamp string            `json:"deletionTimestamp"`
		ManagedFields     []struct {
			Manager     string `json:"manager"`
			Operation   string `json:"operation"`
			Subresource string `json:"subresource"`
		} `json:"managedFields"`
		OwnerReferences []map[string]any `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		ConfigurationName string            `json:"configurationName"`
		CDIName           string            `json:"cdiName"`
		Capacity          int               `json:"capacity"`
		BrokerProperties  map[string]string `json:"brokerProperties"`
		Nodes             []string          `json:"nodes"`
		DeviceUsage       map[string]string `json:"deviceUsage"`
	} `json:"spec"`
	Status struct {
		Allocatable map[string]string `json:"allocatable"`
		Conditions  []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
		ContainerStatuses []struct {
			ContainerID  string `json:"containerID"`
			RestartCount int    `json:"restartCount"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

// is reports whether a condition of the object is true.
func (o object) is(condition string) bool {
	for _, c := range o.Status.Conditions {
		if c.Type == condition {
			return c.Status == "True"
		}
	}
	return false
}

// countManager returns how many entries of managedFields a field manager has.
func (o object) countManager(name string) int {
	count := 0
	for _, entry := range o.Metadata.ManagedFields {
		if entry.Manager == name {
			count++
		}
	}
	return count
}

// paths has the path of each kind that the tests use.
var paths = map[string]string{
	"nodes":          "/api/v1/nodes",
	"pods":           "/api/v1/namespaces/" + namespace + "/pods",
	"services":       "/api/v1/namespaces/" + namespace + "/services",
	"jobs":           "/apis/batch/v1/namespaces/" + namespace + "/jobs",
	"configurations": "/apis/akri.sh/v0/namespaces/" + namespace + "/configurations",
	"instances":      "/apis/akri.sh/v0/namespaces/" + namespace + "/instances",
}

// Content types of patches.
const (
	mergePatch = "application/merge-patch+json"
	jsonPatch  = "application/json-patch+json"
	applyPatch = "application/apply-patch+yaml"
)

// send sends a request whose body is YAML. The error is that of the transport, or the API
// server's refusal.
func (w *world) send(method, path, contentType, body string) ([]byte, error) {
	return w.sendAs("", method, path, contentType, body)
}

// sendAs sends a request of another user, or of the administrator if it is empty.
func (w *world) sendAs(user, method, path, contentType, body string) ([]byte, error) {
	content, err := yaml.YAMLToJSON([]byte(body))
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(w.Context(), method, w.server+path, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", contentType)
	if user != "" {
		request.Header.Set("Impersonate-User", user)
		request.Header.Set("Impersonate-Group", "system:authenticated")
	}
	response, err := w.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %d: %.1000s", method, path, response.StatusCode, text)
	}
	return text, err
}

func (w *world) patch(kind, name, contentType, body string) {
	w.Helper()
	if _, err := w.send(http.MethodPatch, paths[kind]+"/"+name, contentType, body); err != nil {
		w.Fatal(err)
	}
}

// list reads the objects of a kind.
func (w *world) list(kind string) []object {
	w.Helper()
	text, err := w.send(http.MethodGet, paths[kind], "application/json", "")
	var list struct{ Items []object }
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		w.Fatal(err)
	}
	return list.Items
}

// get reads an object, which must exist.
func (w *world) get(kind, name string) object {
	w.Helper()
	for _, o := range w.list(kind) {
		if o.Metadata.Name == name {
			return o
		}
	}
	w.Fatalf("there is no %s in %s", name, kind)
	return object{}
}

// eventually waits until check returns "", and returns how long it took.
func (w *world) eventually(what string, check func() string) time.Duration {
	w.Helper()
	return clustertest.Eventually(w.T, timeout, what, check)
}

// stop ends our controller and our agents on some nodes, and waits for their Pods to go.
func (w *world) stop(nodes ...string) {
	w.Helper()
	w.kubectl("--namespace", akri.Namespace, "scale", "deployment/akri-controller", "--replicas=0")
	w.agentsExcept(nodes...)
	w.eventually("our programs stop", func() string {
		running := w.kubectl("--namespace", akri.Namespace, "get", "pods", "--output=name",
			"--selector=app.kubernetes.io/name in (akri-agent, akri-controller)")
		if want := 2 - len(nodes); strings.Count(running, "akri-agent") > want || strings.Contains(running, "akri-controller") {
			return running
		}
		return ""
	})
}

// start starts our controller and our agents on both nodes, and waits for them.
func (w *world) start() {
	w.Helper()
	w.kubectl("--namespace", akri.Namespace, "scale", "deployment/akri-controller", "--replicas=1")
	w.agentsExcept()
	w.kubectl("--namespace", akri.Namespace, "rollout", "status", "--timeout=90s", "deployment/akri-controller")
	w.eventually("our agents are ready", func() string {
		ready := w.kubectl("--namespace", akri.Namespace, "get", "daemonset/akri-agent", "--output=jsonpath={.status.numberReady}")
		if ready != "2" {
			return ready + " are ready"
		}
		return ""
	})
}

// agentsExcept lets agents run on all nodes but these.
func (w *world) agentsExcept(nodes ...string) {
	w.Helper()
	affinity := "null"
	if len(nodes) > 0 {
		affinity = fmt.Sprintf(`{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": `+
			`[{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["%s"]}]}]}}}`, strings.Join(nodes, `", "`))
	}
	// OnDelete: the agent of the other node is not replaced when the template changes.
	w.kubectl("--namespace", akri.Namespace, "patch", "daemonset/akri-agent", "--type=merge",
		"--patch", `{"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}, "template": {"spec": {"affinity": `+affinity+`}}}}`)
}

// unplug makes the devices of a node disappear, or appear again.
func (w *world) unplug(node string, gone bool) {
	w.Helper()
	text := "ONLINE\n"
	if gone {
		text = "OFFLINE\n"
	}
	file := filepath.Join(w.AkriDir(node), "debug-echo", "debug-echo-availability.txt")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
}
