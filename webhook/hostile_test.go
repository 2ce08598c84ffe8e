package webhook

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/fulltest"
	"akri.sh/akri/webhook/certs"
)

const (
	// hostileVariable is how long TestHostileUser sends each kind of Configuration, for example 10m.
	hostileVariable = "AKRI_TEST_HOSTILE"
	// memoryLimit is the limit in config/webhook, in MiB.
	memoryLimit = 256
	// hostileRequests is how many requests mallory has in flight.
	hostileRequests = 16
	// maxWait is how long ann may wait for a review while mallory sends large Configurations, on
	// a machine where she waits a fifth of a second otherwise.
	maxWait = 5 * time.Second
)

// hostileTemplates returns as many templates of ConfigMaps as a list may have, as JSON.
func hostileTemplates(data string) string {
	list := make([]string, 64)
	for i := range list {
		list[i] = fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{{ INSTANCE_NAME }}-%d"},"data":%s}`, i, data)
	}
	return strings.Join(list, ",")
}

// largeShapes are Configurations with specs of almost 256 KiB that do nothing special.
func largeShapes() map[string]string {
	return map[string]string{
		"texts":      `"instanceBrokerResources":[` + hostileTemplates(`{"k":"`+strings.Repeat("x", 3800)+`"}`) + `]`,
		"properties": `"instanceBrokerResources":[` + hostileTemplates(`{"k":"{{ INSTANCE_PROPERTIES.A }}`+strings.Repeat("x", 3700)+`"}`) + `]`,
	}
}

// hostileShapes are Configurations that take as much memory or time as possible, as the
// fields of their spec.
func hostileShapes() map[string]string {
	property := func(text string) string { return `{"k":"` + text + ` {{ INSTANCE_PROPERTIES.A }}"}` }
	instance := func(data string) string { return `"instanceBrokerResources":[` + hostileTemplates(data) + `]` }
	const (
		large = `{{ repeat 250000 \"x\" }}`
		loops = `{{ range until 99 }}{{ range until 99 }}{{ $x := repeat 50 \"x\" | sha256sum }}{{ end }}{{ end }}`
		group = `{"k":"{{ repeat 250000 \"x\" }}{{ len INSTANCES }}"}`
	)
	inGroup := strings.NewReplacer("INSTANCE_NAME", "CONFIGURATION_NAME", "}}-", "}}-all-")
	unknown := strings.NewReplacer(`"v1","kind":"ConfigMap"`, `"no.example/v1","kind":"None"`)
	return map[string]string{
		"large texts":    instance(property(large)),
		"both lists":     instance(property(large)) + `,"configurationBrokerResources":[` + inGroup.Replace(hostileTemplates(group)) + `]`,
		"wide loops":     instance(property(loops)),
		"garbage":        instance(property(`{{ range until 25 }}{{ $x := repeat 250000 \"x\" }}{{ end }}`)),
		"rendered lists": instance(`{"k":"{{ splitList \"\" (repeat 30000 \"x\") | chunk 1 }}"}`),
		"maps":           instance(`{"k":[` + strings.Repeat(`{"a":0},`, 470) + `0],"p":"{{ INSTANCE_PROPERTIES.A }}"}`),
		"expressions":    instance(`{"k":"` + strings.Repeat("{{1}}", 760) + `"}`),
		"large properties": `"sampleProperties":{"A":"` + strings.Repeat("x", 4000) + `"},` +
			instance(`{"k":"{{ toJson INSTANCE_PROPERTIES | repeat 50 }}"}`),
		"unknown kinds": unknown.Replace(instance(`{}`)),
		"details":       `"discoveryHandler":{"name":"debugEcho","discoveryDetails":"descriptions: [` + strings.Repeat("{a: 0},", 9000) + `]"}`,
	}
}

// hostileConfiguration returns a Configuration with such a spec.
func hostileConfiguration(t testing.TB, name, spec string) *unstructured.Unstructured {
	t.Helper()
	if !strings.Contains(spec, `"discoveryHandler"`) {
		spec = `"discoveryHandler":{"name":"debugEcho","discoveryDetails":"descriptions: []"},` + spec
	}
	object := &unstructured.Unstructured{}
	text := `{"apiVersion":"akri.sh/v0","kind":"Configuration","metadata":{"name":"` + name + `"},"spec":{` + spec + `}}`
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatalf("%v\n%.300s", err, text)
	}
	return object
}

// webhookProcess is the webhook as in config/webhook: a process with a memory limit.
type webhookProcess struct {
	*exec.Cmd
	output  *bytes.Buffer
	address string
	ca      []byte
}

// startProcess starts the webhook and makes the API server call it for the namespace.
func (w *world) startProcess(t *testing.T) *webhookProcess {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "akri-controller")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "akri.sh/akri/cmd/akri-controller")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := &webhookProcess{address: freeAddress(t), output: &bytes.Buffer{}}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.ca = certificate
	for name, content := range map[string][]byte{
		certs.CertFile: certificate, certs.KeyFile: key, "kubeconfig": kubeconfigOf(t, w.Config),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.Cmd = exec.Command(program, "webhook", "--kubeconfig", filepath.Join(dir, "kubeconfig"), "--bind-address", p.address, "--cert-dir", dir,
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	p.Env = append(os.Environ(), fmt.Sprintf("GOMEMLIMIT=%dMiB", memoryLimit), "GOGC=")
	p.Stdout, p.Stderr = p.output, p.output
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- p.Wait() }()
	t.Cleanup(func() {
		select {
		case err := <-exited:
			t.Errorf("the webhook has exited: %v\n%s", err, p.output)
		default:
			_ = p.Process.Signal(os.Interrupt)
			<-exited
		}
	})
	hook := w.registration()
	url := "https://" + p.address + certs.Path
	hook.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: p.ca}
	w.register(hook)
	invalid := configuration(`{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ NONE }}"}}`, "")
	w.Eventually("the webhook is called", func() string {
		// What is stored before the API server sees the registration would not be asked
		// about again.
		err := w.as("").dryRun(invalid)
		if err == nil || !strings.Contains(err.Error(), "NONE") {
			return fmt.Sprint(err)
		}
		return ""
	})
	return p
}

// peak returns the process's largest resident set so far, in MiB.
func (p *webhookProcess) peak(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		t.Fatalf("the webhook is gone: %v\n%s", err, p.output)
	}
	match := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if match == nil {
		t.Skip("the kernel does not say how much memory a process takes")
	}
	kib, _ := strconv.Atoi(string(match[1]))
	return kib >> 10
}

func kubeconfigOf(t *testing.T, config *rest.Config) []byte {
	t.Helper()
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"test": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"test": {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		CurrentContext: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// While one user sends large Configurations, as many at once as that user has clients, the
// webhook stays below its memory limit, and another user is answered in time. It stays below it
// also if they are the most expensive ones; then the other user may have to try again.
func TestHostileUser(t *testing.T) {
	fulltest.Only(t)
	duration := 5 * time.Second
	if text := os.Getenv(hostileVariable); text != "" {
		var err error
		if duration, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", hostileVariable, err)
		}
	}
	w := newWorld(t)
	process := w.startProcess(t)
	for _, user := range []string{"mallory", "ann"} {
		w.grant(user, configurations, rule("", "configmaps", everyVerb...), rule("", "pods", everyVerb...), rule("no.example", "*", everyVerb...))
	}
	usual, _ := w.besieged(t, duration/5, nil)
	limit := max(maxWait, 25*slices.Max(usual))
	t.Logf("the webhook takes %d MiB at rest, and ann's Configurations up to %v", process.peak(t), slices.Max(usual))
	for _, attack := range []struct {
		name   string
		shapes map[string]string
		inTime bool // ann is answered in time, and without trying again
	}{
		{"large", largeShapes(), true},
		{"hostile", hostileShapes(), false},
	} {
		t.Run(attack.name, func(t *testing.T) {
			took, failed := w.besieged(t, duration, attack.shapes)
			slices.Sort(took)
			peak := process.peak(t)
			t.Logf("%d of ann's Configurations took %v (p50), %v (max), %d failed; the webhook took %d MiB at most",
				len(took), took[len(took)/2], took[len(took)-1], failed, peak)
			if peak >= memoryLimit {
				t.Errorf("the webhook took %d MiB, and its limit is %d", peak, memoryLimit)
			}
			if longest := took[len(took)-1]; attack.inTime && (failed > 0 || longest > limit) {
				t.Errorf("%d of ann's Configurations failed, and the longest took %v, want less than %v", failed, longest, limit)
			}
		})
	}
}

// besieged returns how long ann's Configurations took while mallory sends Configurations of
// some shapes, and how many of ann's failed.
func (w *world) besieged(t *testing.T, duration time.Duration, shapes map[string]string) (took []time.Duration, failed int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	var group sync.WaitGroup
	for client := range min(hostileRequests, hostileRequests*len(shapes)) {
		group.Go(func() { w.besiege(ctx, client, shapes) })
	}
	ann := w.as("ann")
	pace := time.NewTicker(500 * time.Millisecond)
	defer pace.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		<-pace.C
		began := time.Now()
		err := ann.apply(strings.Replace(configuration(aPod, ""), "image: b", fmt.Sprintf("image: b%d", time.Now().UnixNano()), 1))
		took = append(took, time.Since(began))
		if err != nil {
			failed++
			t.Logf("ann's Configuration got, after %v: %v", took[i], err)
		}
	}
	group.Wait()
	return took, failed
}

// besiege sends the Configurations of one of mallory's clients: each client has four of them,
// which are new or changed each time.
func (w *world) besiege(ctx context.Context, client int, shapes map[string]string) {
	mallory := w.as("mallory").api.Resource(v0.ConfigurationResource).Namespace(w.Namespace)
	names := slices.Sorted(maps.Keys(shapes))
	for i := 0; ctx.Err() == nil; i++ {
		spec := fmt.Sprintf(`%s,"brokerProperties":{"NR":"%d"}`, shapes[names[(client+i)%len(names)]], i)
		object := hostileConfiguration(w, fmt.Sprintf("siege-%d-%d", client, i%4), spec)
		_, err := mallory.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "mallory", Force: true})
		if err != nil && ctx.Err() == nil && i < len(names) && client == 0 {
			w.Logf("%s: %.200s", names[(client+i)%len(names)], err)
		}
	}
}
