package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/controller"
	"akri.sh/akri/internal/apitest"
)

// runMain is set where the program of the tests is to be the program itself.
const runMain = "AKRI_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(apitest.Run(m))
}

// world is an API server with a kubeconfig for it.
type world struct {
	*apitest.World
	kubeconfig string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: apitest.NewWorld(t, corev1.AddToScheme)}
	w.writeKubeconfig()
	return w
}

// writeKubeconfig writes a kubeconfig for the API server.
func (w *world) writeKubeconfig() {
	w.T.Helper()
	w.kubeconfig = filepath.Join(w.T.TempDir(), "kubeconfig")
	file := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: w.Config.Host, CertificateAuthorityData: w.Config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {
			ClientCertificateData: w.Config.CertData, ClientKeyData: w.Config.KeyData, Token: w.Config.BearerToken,
			Impersonate: w.Config.Impersonate.UserName,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u", Namespace: w.Namespace}},
		CurrentContext: "x",
	}
	if err := clientcmd.WriteToFile(file, w.kubeconfig); err != nil {
		w.T.Fatal(err)
	}
}

// accessTo returns what the flag --kubeconfig leads to.
func accessTo(t testing.TB, kubeconfig string) access {
	t.Helper()
	a := newAccess()
	if err := a.set.Set("kubeconfig", kubeconfig); err != nil {
		t.Fatal(err)
	}
	return a
}

// startController runs a controller until stop is called or the test ends.
func (w *world) startController() (stop func()) {
	w.T.Helper()
	options := manager.Options{Scheme: w.Scheme(), Cache: controller.CacheOptions()}
	return w.StartManager(nil, options, func(ctx context.Context, mgr manager.Manager) error {
		return controller.Setup(ctx, mgr, controller.Options{Workers: 2})
	})
}

// installed makes the API server tell that Akri runs, and a node node-a with an agent.
func (w *world) installed() {
	w.T.Helper()
	metadata := func(name string) string {
		return "{namespace: akri-system, name: " + name + ", labels: {app.kubernetes.io/name: " + name + ", app.kubernetes.io/part-of: akri}}"
	}
	spec := "{selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}"
	var objects []client.Object
	for _, text := range []string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: akri-system}}",
		"{apiVersion: v1, kind: Node, metadata: {name: node-a}, status: {conditions: [{type: Ready, status: 'True'}]}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: " + metadata("akri-controller") + ", spec: " + spec +
			", status: {readyReplicas: 1, availableReplicas: 1, replicas: 1}}",
		"{apiVersion: apps/v1, kind: DaemonSet, metadata: " + metadata("akri-agent") + ", spec: " + spec +
			", status: {desiredNumberScheduled: 1, currentNumberScheduled: 1, numberMisscheduled: 0, numberReady: 1}}",
		"{apiVersion: v1, kind: Pod, metadata: " + metadata("akri-agent") + ", spec: {nodeName: node-a, containers: [{name: a, image: a}]}, " +
			"status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}",
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			w.T.Fatal(err)
		}
		status := object.Object["status"]
		err := w.Create(w.T.Context(), object)
		if object.GetKind() == "Namespace" && apierrors.IsAlreadyExists(err) {
			continue // it stays: there is no controller of namespaces
		}
		if err == nil && status != nil {
			object.Object["status"] = status
			err = w.Status().Update(w.T.Context(), object)
		}
		if err != nil {
			w.T.Fatal(err)
		}
		objects = append(objects, object)
	}
	w.T.Cleanup(func() {
		for _, object := range objects {
			if object.GetObjectKind().GroupVersionKind().Kind != "Namespace" {
				_ = w.Delete(context.Background(), object, client.GracePeriodSeconds(0)) // the context of the test is cancelled here
			}
		}
	})
}

// waitReady waits until a Configuration is Ready in its current generation.
func (w *world) waitReady(configuration string) {
	w.T.Helper()
	w.Eventually("Configuration "+configuration+" is Ready", func() string {
		var c v0.Configuration
		w.Read(configuration, &c)
		ready := meta.FindStatusCondition(c.Status.Conditions, v0.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != c.Generation {
			return fmt.Sprintf("the condition is %+v", ready)
		}
		return ""
	})
}

// commandResult is the output and the exit code of a command.
type commandResult struct {
	out, err string
	code     int
}

// run runs a command with the kubeconfig of the world.
func (w *world) run(stdin string, args ...string) commandResult {
	w.T.Helper()
	return run(w.T, stdin, append(args, "--kubeconfig", w.kubeconfig)...)
}

func run(t testing.TB, stdin string, args ...string) commandResult {
	t.Helper()
	var out, errOut bytes.Buffer
	root := newRoot(cli.Streams{In: strings.NewReader(stdin), Out: &out, Err: &errOut})
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	if err != nil && err.Error() != "" {
		errOut.WriteString("error: " + err.Error() + "\n")
	}
	return commandResult{out.String(), errOut.String(), cli.ExitCode(err)}
}

// want checks the exit code and that the output contains all parts in this order. A
// part that starts with an exclamation mark must not be in the output.
func (r commandResult) want(t testing.TB, code int, parts ...string) {
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
			t.Errorf("%q is not in the output, or not after the previous part:\n%s%s", part, r.out, r.err)
			continue
		}
		rest = after
	}
}

// TestNoCluster covers the errors without a cluster.
func TestNoCluster(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{{"tree"}, {"why", "x"}, {"explain", "pod", "x"}, {"rbac", "x"}} {
		run(t, "", append(args, "--kubeconfig", missing)...).want(t, 1, "error: read the kubeconfig: ")
	}
	run(t, "", "diff", "x", "--kubeconfig", missing).want(t, 2, "error: read the kubeconfig: ")
	for _, args := range [][]string{{"tree", "a", "b"}, {"diff"}, {"diff", "a", "-f", "b"}, {"rbac"}, {"why"}, {"explain", "pod"},
		{"explain", "pod/a", "b"}, {"explain", "pod/a", "-o", "xml"}, {"tree", "--nope"}} {
		run(t, "", args...).want(t, 2, "error: ", "See 'kubectl akri "+args[0]+" --help' for usage")
	}
}

func TestTreeAndCompletion(t *testing.T) {
	w := newWorld(t)
	w.run("", "tree").want(t, 0, `No Configurations in namespace "`+w.Namespace+`"`)
	w.Apply(example)
	w.run("", "tree").want(t, 0, "Configuration "+w.Namespace+"/cam")
	w.run("", "tree", "-A").want(t, 0, "Configuration "+w.Namespace+"/cam")
	w.run("", "tree", "nope").want(t, 1, `error: no Configuration "nope" in namespace "`+w.Namespace+`"`)
	w.Instance("cam", "cam-1", nil)
	for _, completion := range []struct{ command, want string }{{"tree", "cam\n"}, {"diff", "cam\n"}, {"rbac", "cam\n"}, {"why", "cam-1\n"}} {
		// The flags come first, because the shell completes the last argument.
		got := run(t, "", "__complete", completion.command, "--kubeconfig", w.kubeconfig, "")
		if !strings.HasPrefix(got.out, completion.want) {
			t.Errorf("%s completes %q, want %q first", completion.command, got.out, completion.want)
		}
	}
}

// TestAccessFlags uses kubectl's flags, which win over the kubeconfig.
func TestAccessFlags(t *testing.T) {
	w := newWorld(t)
	w.Apply(example)
	w.as("jane", `[{apiGroups: [akri.sh], resources: [configurations, instances], verbs: [get, list]}]`)
	w.run("", "why", "cam").want(t, 0, "Configuration "+w.Namespace+"/cam", "!note")
	w.run("", "why", "cam", "--as=jane").want(t, 0, "Configuration "+w.Namespace+"/cam",
		"note: no permission to list Pods, so")
	w.run("", "--as=nobody", "why", "configuration/cam").want(t, 1, `User "nobody" cannot get resource "configurations"`)
	w.run("", "tree", "--as=nobody", "--as-group=system:masters").want(t, 0, "Configuration "+w.Namespace+"/cam")
	w.run("", "tree", "-n", "default").want(t, 0, `No Configurations in namespace "default"`)
	w.run("", "tree", "--context=y").want(t, 1, "error: read the kubeconfig: ", `context "y" does not exist`)
	w.run("", "tree", "-s", "https://127.0.0.1:1").want(t, 1, "127.0.0.1:1")
	run(t, "", "version", "--client", "--token=x").want(t, 0, "kubectl-akri")
}

// as returns the world for a user who only has a Role with these rules.
func (w *world) as(user, rules string) *world {
	w.T.Helper()
	w.Apply("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: " + user + "}\nrules: " + rules)
	w.Apply("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: " + user + "}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: " + user +
		"}\nsubjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: " + user + "}]")
	file, err := clientcmd.LoadFromFile(w.kubeconfig)
	if err != nil {
		w.T.Fatal(err)
	}
	file.AuthInfos["u"].Impersonate = user
	other := *w
	other.kubeconfig = filepath.Join(w.T.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, other.kubeconfig); err != nil {
		w.T.Fatal(err)
	}
	w.Eventually("the Role of "+user+" is in effect", func() string {
		if got := other.run("", "tree"); got.code != 0 {
			return got.err
		}
		return ""
	})
	return &other
}

// TestMissingPermissions checks that an action that is not permitted is reported as
// such, and objects that may not be read are left out where possible.
func TestMissingPermissions(t *testing.T) {
	w := newWorld(t)
	w.Apply(example)
	w.Instance("cam", "cam-1", map[string]string{"TEXT": "foo", "ROOM": "hall"})
	reader := w.as("reader", `[{apiGroups: [akri.sh], resources: [configurations, instances], verbs: [get, list]}]`)
	reader.run("", "why", "cam-1").want(t, 0, "Instance "+w.Namespace+"/cam-1", "seen from  node-a\n",
		"The controller has not reconciled the Instance yet", "!not installed",
		"note: no permission to list Deployments, so", "note: no permission to list Pods, so", "note: no permission to list Nodes, so")
	reader.run(example, "diff", "-f", "-").want(t, 2, "the API server rejects the Configuration", `cannot update resource "configurations"`)
	reader.run("", "diff", "cam").want(t, 2, `cannot list resource`)
	reader.run("", "explain", "cm", "x").want(t, 1, `cannot get resource "configmaps"`)
	reader.run("", "rbac", "cam").want(t, 0, "- secrets")

	editor := w.as(
		"editor",
		`[{apiGroups: [akri.sh], resources: [configurations, instances], verbs: [get, list, update]}, `+
			`{apiGroups: [""], resources: [configmaps, services, secrets], verbs: [get, list]}]`,
	)
	editor.run(example, "diff", "-f", "-").want(t, 2, "rejected: you are not allowed to apply it, and diff uses your permissions: ",
		"cannot patch resource", "!aggregate-to-controller")
}
