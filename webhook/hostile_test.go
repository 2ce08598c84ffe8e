package webhook

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
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
	// hostileVariable is how long TestHostileUser lasts, for example 10m.
	hostileVariable = "AKRI_TEST_HOSTILE"
	// memoryLimit is the limit in config/webhook, in MiB.
	memoryLimit = 256
	// hostileRequests is how many requests mallory has in flight.
	hostileRequests = 8
)

// hostileTemplate returns a ConfigMap's template as JSON.
func hostileTemplate(i int, data string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{{ INSTANCE_NAME }}-{{ NODE }}-%d","annotations":`+
		`{"akri.sh/for-each":"NODES"}},"data":%s}`, i, data)
}

// hostileTemplates returns as many templates as a list may have.
func hostileTemplates(data string) string {
	list := make([]string, 64)
	for i := range list {
		list[i] = hostileTemplate(i, data)
	}
	return strings.Join(list, ",")
}

// hostileShapes are Configurations that take as much memory or time as possible, as the
// fields of their spec.
func hostileShapes() map[string]string {
	nested := strings.Repeat(`{"a":`, 90) + "0" + strings.Repeat("}", 90)
	property := func(text string) string { return `{"k":"` + text + ` {{ INSTANCE_PROPERTIES.A }}"}` }
	instance := func(templates string) string { return `"instanceBrokerResources":[` + templates + `]` }
	details := func(text string) string {
		return `"discoveryHandler":{"name":"debugEcho","discoveryDetails":` + strconv.Quote(text) + `}`
	}
	const lists = `{"k":"{{ splitList \"\" (repeat 30000 \"x\") | chunk 1 }}"}`
	const (
		large = `{{ repeat 250000 \"x\" }}`
		loops = `{{ range until 99 }}{{ range until 99 }}{{ $x := repeat 50 \"x\" | sha256sum }}{{ end }}{{ end }}`
		group = `{"k":"{{ repeat 250000 \"x\" }}{{ len INSTANCES }}"}`
	)
	inGroup := strings.NewReplacer("INSTANCE_NAME", "CONFIGURATION_NAME", "NODE }}-", "NODE }}-all-")
	unknown := strings.NewReplacer(`"v1","kind":"ConfigMap"`, `"no.example/v1","kind":"None"`)
	return map[string]string{
		"large texts":      instance(hostileTemplates(property(large))),
		"texts to escape":  instance(hostileTemplates(property(`{{ repeat 250000 \"\u0001\" }}`))),
		"wide loops":       instance(hostileTemplates(property(loops))),
		"garbage":          instance(hostileTemplates(property(`{{ range until 25 }}{{ $x := repeat 250000 \"x\" }}{{ end }}`))),
		"rendered lists":   instance(hostileTemplates(lists)),
		"rendered nesting": instance(hostileTemplates(`{"k":` + nested + `,"p":"{{ INSTANCE_PROPERTIES.A }}"}`)),
		"literal maps":     instance(hostileTemplates(`{"k":[` + strings.Repeat(`{"a":0},`, 250) + `0],"p":"{{ INSTANCE_PROPERTIES.A }}"}`)),
		"more maps":        instance(hostileTemplates(`{"k":[` + strings.Repeat(`{"a":0},`, 5000) + `0]}`)),
		"literal texts":    instance(hostileTemplates(`{"k":"` + strings.Repeat("x", 40_000) + `"}`)),
		"expressions":      instance(hostileTemplates(`{"k":"` + strings.Repeat("{{1}}", 1600) + `"}`)),
		"both lists": instance(hostileTemplates(property(large))) +
			`,"configurationBrokerResources":[` + inGroup.Replace(hostileTemplates(group)) + `]`,
		"wide details":    details("descriptions: [" + strings.Repeat("a,", 120_000) + "]"),
		"mapped details":  details("descriptions: [" + strings.Repeat("{a: 0},", 9000) + "]"),
		"aliased details": details("descriptions: [&a " + strings.Repeat("x", 10_000) + "," + strings.Repeat("*a,", 15_000) + "]"),
		"deep details":    details("descriptions: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000)),
		"large properties": `"sampleProperties":{"A":"` + strings.Repeat("x", 4000) + `"},` +
			instance(hostileTemplates(`{"k":"{{ toJson INSTANCE_PROPERTIES | repeat 50 }}"}`)),
		"unknown kinds": instance(unknown.Replace(hostileTemplates(`{}`))),
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

// While one user sends the most expensive Configurations, as fast as possible, the
// webhook stays below its memory limit and answers another user.
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
	t.Logf("the webhook takes %d MiB at rest", process.peak(t))
	for _, user := range []string{"mallory", "ann"} {
		w.grant(user, configurations, rule("", "configmaps", everyVerb...), rule("", "pods", everyVerb...), rule("no.example", "*", everyVerb...))
	}
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	var group sync.WaitGroup
	var sent atomic.Int64
	outcomes := sync.Map{}
	for i := range hostileRequests {
		group.Go(func() { w.besiege(ctx, i, &sent, &outcomes) })
	}
	pace := time.NewTicker(500 * time.Millisecond)
	defer pace.Stop()
	// A Pod, which the webhook does not see, shows how busy the API server is.
	var took, bare []time.Duration
	failed := 0
	ann := w.as("ann")
	pod := decode(t, strings.Replace(aPod, "{{ INSTANCE_NAME }}", "bare", 1))
	for i := 0; ctx.Err() == nil; i++ {
		began := time.Now()
		err := ann.apply(strings.Replace(configuration(aPod, ""), "image: b", fmt.Sprintf("image: b%d", i), 1))
		took = append(took, time.Since(began))
		if err != nil {
			failed++
			t.Logf("ann's Configuration got, after %v: %v", took[len(took)-1], err)
		}
		began = time.Now()
		if _, err := ann.api.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(w.Namespace).Apply(ctx, "bare", pod,
			metav1.ApplyOptions{FieldManager: "ann", DryRun: []string{metav1.DryRunAll}}); err == nil {
			bare = append(bare, time.Since(began))
		}
		select {
		case <-ctx.Done():
		case <-pace.C:
		}
	}
	group.Wait()
	slices.Sort(took)
	slices.Sort(bare)
	peak := process.peak(t)
	t.Logf("%v: mallory sent %d requests; %d of ann's took %v (p50), %v (p99), %v (max); the webhook took %d MiB at most",
		duration, sent.Load(), len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1], peak)
	if len(bare) > 0 {
		t.Logf("a dry run of a Pod, without the webhook, took %v (p50), %v (max)", bare[len(bare)/2], bare[len(bare)-1])
	}
	outcomes.Range(func(shape, outcome any) bool { t.Logf("%s: %.200s", shape, outcome); return true })
	if peak >= memoryLimit {
		t.Errorf("the webhook took %d MiB, and its limit is %d", peak, memoryLimit)
	}
	// How long it takes depends on what else the machine does, so a short run only checks
	// that mallory does not lock ann out.
	if failed > len(took)/2 {
		t.Errorf("%d of ann's %d Configurations failed", failed, len(took))
	}
	if p99 := took[len(took)*99/100]; os.Getenv(hostileVariable) != "" && p99 > 2*time.Second {
		t.Errorf("ann's Configurations took %v", p99)
	}
}

// besiege sends the hostile Configurations of one of mallory's clients, most of them as
// dry runs.
func (w *world) besiege(ctx context.Context, client int, sent *atomic.Int64, outcomes *sync.Map) {
	mallory := w.as("mallory").api.Resource(v0.ConfigurationResource).Namespace(w.Namespace)
	shapes := hostileShapes()
	names := make([]string, 0, len(shapes))
	for name := range shapes {
		names = append(names, name)
	}
	slices.Sort(names)
	for i := client; ctx.Err() == nil; i++ {
		shape := names[i%len(names)]
		object := hostileConfiguration(w, fmt.Sprintf("siege-%d", client), shapes[shape])
		options := metav1.ApplyOptions{FieldManager: "mallory", Force: true}
		if i%3 > 0 {
			options.DryRun = []string{metav1.DryRunAll}
		}
		began := time.Now()
		_, err := mallory.Apply(ctx, object.GetName(), object, options)
		sent.Add(1)
		if ctx.Err() == nil {
			outcomes.Store(shape, fmt.Sprintf("%v: %v", time.Since(began).Round(time.Millisecond), err))
		}
	}
}
