package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/offline"
	"akri.sh/akri/controller"
	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(apitest.Run(m))
}

// patience bounds failures; no test passes by it.
const patience = 20 * time.Second

// world is a namespace on a real API server, with a kubeconfig that leads there.
type world struct {
	client.Client
	t          *testing.T
	config     *rest.Config
	namespace  string
	kubeconfig string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	config := apitest.Start(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v0.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Client: api, t: t, config: config, namespace: apitest.Namespace(t, config)}
	w.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	file := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u", Namespace: w.namespace}},
		CurrentContext: "x",
	}
	if err := clientcmd.WriteToFile(file, w.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return w
}

// control runs a controller until the returned function is called, or the test
// ends.
func (w *world) control() (stop func()) {
	w.t.Helper()
	mgr, err := ctrl.NewManager(rest.CopyConfig(w.config), manager.Options{
		Scheme: w.Scheme(), Cache: controller.CacheOptions(), Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := controller.Setup(ctx, mgr, controller.Options{Workers: 2}); err != nil {
		w.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the controller ended with: %v", err)
		}
	}
	w.t.Cleanup(stop)
	return stop
}

// apply makes the objects of a YAML text in the world's namespace.
func (w *world) apply(text string) {
	w.t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			w.t.Fatalf("%v\n%s", err, document)
		}
		if kind := object.GetKind(); kind != "CustomResourceDefinition" && kind != "Node" {
			object.SetNamespace(w.namespace)
		}
		if err := w.Client.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(&object), client.FieldOwner("test"), client.ForceOwnership); err != nil {
			w.t.Fatalf("%v\n%s", err, document)
		}
	}
}

// instance makes an Instance as an agent would.
func (w *world) instance(configuration, name string, properties map[string]string) *v0.Instance {
	w.t.Helper()
	var owner v0.Configuration
	if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: configuration}, &owner); err != nil {
		w.t.Fatal(err)
	}
	instance := &v0.Instance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&owner, v0.ConfigurationKind)},
		},
		Spec: v0.InstanceSpec{
			ConfigurationName: configuration, CDIName: v0.CDIName(configuration, name), Capacity: 1,
			Nodes: []string{"node-a"}, BrokerProperties: properties,
		},
	}
	if err := w.Create(w.t.Context(), instance); err != nil {
		w.t.Fatal(err)
	}
	return instance
}

// applied waits until the controller has dealt with a Configuration's generation
// and with its Instances.
func (w *world) applied(configuration string) {
	w.t.Helper()
	w.eventually("Configuration "+configuration+" is applied", func() string {
		var c v0.Configuration
		if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: configuration}, &c); err != nil {
			return err.Error()
		}
		applied := meta.FindStatusCondition(c.Status.Conditions, v0.ConditionReady)
		if applied == nil || applied.Status != metav1.ConditionTrue || applied.ObservedGeneration != c.Generation {
			return "it is not"
		}
		return ""
	})
}

func (w *world) eventually(what string, check func() string) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		complaint := check()
		if complaint == "" {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: still not after %v: %s", what, patience, complaint)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// ran is what a command has left.
type ran struct {
	out, err string
	code     int
}

// run runs a command as the program does.
func (w *world) run(stdin string, args ...string) ran {
	w.t.Helper()
	return run(w.t, stdin, append(args, "--kubeconfig", w.kubeconfig)...)
}

func run(t *testing.T, stdin string, args ...string) ran {
	t.Helper()
	var out, errOut bytes.Buffer
	root := newRoot(offline.Streams{In: strings.NewReader(stdin), Out: &out, Err: &errOut})
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	if err != nil && err.Error() != "" {
		errOut.WriteString("error: " + err.Error() + "\n")
	}
	return ran{out.String(), errOut.String(), offline.ExitCode(err)}
}

// want fails unless the exit code is as expected and each part is in the output,
// in that order; parts that begin with an exclamation mark must not be there.
func (r ran) want(t *testing.T, code int, parts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d\n%s%s", r.code, code, r.out, r.err)
	}
	rest := r.out + r.err
	for _, part := range parts {
		if absent, negated := strings.CutPrefix(part, "!"); negated {
			if strings.Contains(r.out+r.err, absent) {
				t.Errorf("%q is in the output:\n%s%s", absent, r.out, r.err)
			}
			continue
		}
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("%q is not in the output, or not after the part before it:\n%s%s", part, r.out, r.err)
			continue
		}
		rest = after
	}
}

// TestNoCluster: errors that people meet before they have a cluster.
func TestNoCluster(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{{"tree"}, {"why", "x"}, {"explain", "pod", "x"}, {"rbac", "x"}} {
		run(t, "", append(args, "--kubeconfig", missing)...).want(t, 1, "error: read the kubeconfig: ")
	}
	run(t, "", "diff", "x", "--kubeconfig", missing).want(t, 2, "error: read the kubeconfig: ")
	for _, args := range [][]string{{"tree", "a", "b"}, {"diff"}, {"diff", "a", "-f", "b"}, {"rbac"}, {"why"}, {"explain", "pod"}, {"explain", "pod/a", "b"}, {"explain", "pod/a", "-o", "xml"}, {"tree", "--nope"}} {
		run(t, "", args...).want(t, 2, "error: ", "See 'kubectl akri "+args[0]+" --help' for usage")
	}
}

func TestTreeAndCompletion(t *testing.T) {
	w := newWorld(t)
	w.run("", "tree").want(t, 0, `No Configurations in namespace "`+w.namespace+`"`)
	w.apply(example)
	w.run("", "tree").want(t, 0, "Configuration "+w.namespace+"/cam")
	w.run("", "tree", "-A").want(t, 0, "Configuration "+w.namespace+"/cam")
	w.run("", "tree", "nope").want(t, 1, `error: there is no Configuration "nope" in namespace "`+w.namespace+`"`)
	w.instance("cam", "cam-1", nil)
	for _, completion := range []struct{ command, want string }{{"tree", "cam\n"}, {"diff", "cam\n"}, {"rbac", "cam\n"}, {"why", "cam-1\n"}} {
		// The flags come first: what is last is what the shell asks about.
		got := run(t, "", "__complete", completion.command, "--kubeconfig", w.kubeconfig, "")
		if !strings.HasPrefix(got.out, completion.want) {
			t.Errorf("%s completes %q, want %q first", completion.command, got.out, completion.want)
		}
	}
}

// as is the world of a user who has a Role with these rules, and no other rights.
func (w *world) as(user, rules string) *world {
	w.t.Helper()
	w.apply("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: " + user + "}\nrules: " + rules)
	w.apply("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: " + user + "}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: " + user + "}\nsubjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: " + user + "}]")
	file, err := clientcmd.LoadFromFile(w.kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	file.AuthInfos["u"].Impersonate = user
	other := *w
	other.kubeconfig = filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, other.kubeconfig); err != nil {
		w.t.Fatal(err)
	}
	w.eventually("the role of "+user+" counts", func() string {
		if got := other.run("", "tree"); got.code != 0 {
			return got.err
		}
		return ""
	})
	return &other
}

// TestWithoutRights: what users may not do is told as that, and what they may
// not see is left out where that helps.
func TestWithoutRights(t *testing.T) {
	w := newWorld(t)
	w.apply(example)
	w.instance("cam", "cam-1", map[string]string{"TEXT": "foo", "ROOM": "hall"})
	reader := w.as("reader", `[{apiGroups: [akri.sh], resources: [configurations, instances], verbs: [get, list]}]`)
	reader.run("", "why", "cam-1").want(t, 0, "Instance "+w.namespace+"/cam-1", "seen from  node-a\n", "The controller has not looked at the Instance yet", "note: Pods of other namespaces may not be seen")
	reader.run(example, "diff", "-f", "-").want(t, 2, "does not accept the Configuration", `cannot update resource "configurations"`)
	reader.run("", "diff", "cam").want(t, 2, `cannot list resource`)
	reader.run("", "explain", "cm", "x").want(t, 1, `cannot get resource "configmaps"`)
	reader.run("", "rbac", "cam").want(t, 0, "- secrets")

	editor := w.as("editor", `[{apiGroups: [akri.sh], resources: [configurations, instances], verbs: [get, list, update]}, {apiGroups: [""], resources: [configmaps, services, secrets], verbs: [get, list]}]`)
	editor.run(example, "diff", "-f", "-").want(t, 2, "refused: you may not apply it, and diff tries it with your rights: ", "cannot patch resource", "!aggregate-to-controller")
}
