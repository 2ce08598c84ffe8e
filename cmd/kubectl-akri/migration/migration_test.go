package migration

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"maps"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestImports checks that nothing here can reach a cluster.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		for _, prefix := range []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "akri.sh/akri/agent"} {
			if name == prefix || strings.HasPrefix(name, prefix+"/") {
				t.Errorf("%s is among the dependencies and can reach a cluster: move the code that needs it to cmd/kubectl-akri", name)
			}
		}
	}
}

func daemonSet(name, image string) Workload {
	return Workload{Kind: "DaemonSet", Namespace: "default", Name: name, Pod: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: image}},
	}}
}

func TestRoles(t *testing.T) {
	custom := daemonSet("scanners", "scanners:1")
	custom.Pod.Containers[0].Env = []corev1.EnvVar{{Name: "DISCOVERY_HANDLERS_DIRECTORY", Value: "/var/lib/akri"}}
	ofUser := custom
	ofUser.Name = "akri-scanner-discovery"
	replaced := daemonSet("akri-udev-discovery", "x")
	replaced.Labels = map[string]string{"app.kubernetes.io/part-of": "akri"}
	renamed := daemonSet("edge-akri-agent-daemonset", "mirror:5000/agent")
	renamed.Pod.Containers[0].Env = custom.Pod.Containers[0].Env
	renamed.Pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "device-plugin", MountPath: "/var/lib/kubelet/device-plugins/"}}
	webhook := daemonSet("checker", "ghcr.io/project-akri/akri/webhook-configuration:v0.13.8")
	webhook.Kind = "Deployment"
	for _, test := range []struct {
		workload Workload
		want     Role
	}{
		{daemonSet("akri-agent-daemonset", "mirror:5000/agent"), RoleAgent},
		{daemonSet("akri-agent", "akri.sh/agent:v1"), RoleNewAgent},
		{daemonSet("akri-udev-discovery-daemonset", "x"), RoleHandler},
		{renamed, RoleAgent},
		{replaced, RoleNewHandler},
		{ofUser, RoleHandler},
		{daemonSet("node-exporter", "x"), RoleNone},
		{custom, RoleHandler},
		{webhook, RoleWebhook},
	} {
		if got := test.workload.Role(); got != test.want {
			t.Errorf("%s: role %q, want %q", test.workload.Name, got, test.want)
		}
	}
}

// TestWebhookOf checks that only the registration of Akri's chart is taken for Akri's.
func TestWebhookOf(t *testing.T) {
	type webhooks = admissionregistrationv1.ValidatingWebhookConfiguration
	type service = admissionregistrationv1.ServiceReference
	registration := func(change func(*webhooks, *service)) *webhooks {
		target := &service{Namespace: "edge", Name: "checker", Path: new("/validate")}
		object := &webhooks{
			ObjectMeta: metav1.ObjectMeta{Name: "checker", Labels: map[string]string{
				"app.kubernetes.io/name": "checker", "app.kubernetes.io/component": "admission-webhook",
			}},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "checker.edge.svc", ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: target},
				Rules: []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"akri.sh"}, Resources: []string{"configurations"},
				}}},
			}},
		}
		change(object, target)
		return object
	}
	for name, test := range map[string]struct {
		change func(*webhooks, *service)
		want   *Webhook
	}{
		"of Akri's chart":      {func(*webhooks, *service) {}, &Webhook{Name: "checker", Original: true, Fail: true}},
		"of another Service":   {func(_ *webhooks, s *service) { s.Name = "policy" }, &Webhook{Name: "checker", Fail: true}},
		"of another namespace": {func(_ *webhooks, s *service) { s.Namespace = "policy" }, &Webhook{Name: "checker", Fail: true}},
		"at another path":      {func(_ *webhooks, s *service) { s.Path = nil }, &Webhook{Name: "checker", Fail: true}},
		"at a URL": {
			func(w *webhooks, _ *service) { w.Webhooks[0].ClientConfig.Service = nil }, &Webhook{Name: "checker", Fail: true},
		},
		"under another name": {func(w *webhooks, _ *service) { w.Name = "policy" }, &Webhook{Name: "policy", Fail: true}},
		"without its labels": {func(w *webhooks, _ *service) { w.Labels = nil }, &Webhook{Name: "checker", Fail: true}},
		"with a second webhook": {
			func(w *webhooks, _ *service) { w.Webhooks = append(w.Webhooks, w.Webhooks[0]) }, &Webhook{Name: "checker", Fail: true},
		},
		"for other kinds": {func(w *webhooks, _ *service) { w.Webhooks[0].Rules = nil }, nil},
	} {
		if got := WebhookOf(registration(test.change)); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func TestVersions(t *testing.T) {
	labeled := daemonSet("a", "registry:5000/agent@sha256:0123")
	labeled.Labels = map[string]string{"helm.sh/chart": "akri-0.13.8"}
	for _, test := range []struct {
		workload Workload
		want     string
		old      bool
	}{
		{daemonSet("a", "ghcr.io/project-akri/akri/agent:v0.13.26-dev"), "0.13.26-dev", false},
		{daemonSet("a", "ghcr.io/project-akri/akri/agent:v0.12.20"), "0.12.20", true},
		{daemonSet("a", "ghcr.io/deislabs/akri/agent:v0.8.4"), "0.8.4", true},
		{daemonSet("a", "registry:5000/agent:latest"), "", false},
		{labeled, "0.13.8", false},
	} {
		got := test.workload.version()
		if got != test.want || tooOld(got) != test.old {
			t.Errorf("%s: version %q, too old %t", test.workload.Pod.Containers[0].Image, got, tooOld(got))
		}
	}
}

func TestReadRelease(t *testing.T) {
	encode := func(text string, compress bool) []byte {
		data := []byte(text)
		if compress {
			var buffer bytes.Buffer
			writer := gzip.NewWriter(&buffer)
			_, _ = writer.Write(data)
			_ = writer.Close()
			data = buffer.Bytes()
		}
		return []byte(base64.StdEncoding.EncodeToString(data))
	}
	const text = `{"name": "akri", "namespace": "edge", "chart": {"metadata": {"name": "akri", "version": "0.13.8"}},
		"manifest": "---\nkind: DaemonSet\nmetadata:\n  name: akri-agent-daemonset\n` +
		`---\napiVersion: akri.sh/v0\nkind: Configuration\nmetadata: {name: c}\n",
		"hooks": [{"name": "akri-cleanup", "kind": "Job", "events": ["pre-delete"]}]}`
	for _, compressed := range []bool{true, false} {
		release, err := ReadRelease(encode(text, compressed))
		if err != nil {
			t.Fatal(err)
		}
		if release.Namespace != "edge" || release.Chart != "akri 0.13.8" || !slices.Equal(release.Deletes, []string{"akri-cleanup"}) ||
			!slices.Equal(release.Configurations, []string{"edge/c"}) {
			t.Errorf("got %+v", release)
		}
	}
	for name, data := range map[string][]byte{
		"NotBase64":    []byte("%"),
		"NotJSON":      encode("{", true),
		"CutOff":       encode(text, true)[:40],
		"AnotherChart": encode(`{"manifest": "kind: DaemonSet\nmetadata: {name: akri-agent}"}`, true),
	} {
		if release, err := ReadRelease(data); err == nil {
			t.Errorf("%s: got %+v", name, release)
		}
	}
}

// TestTraces checks that only what agents of Akri wrote is removed.
func TestTraces(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: subresource}
	}
	object := &unstructured.Unstructured{}
	object.SetFinalizers([]string{"node1", "lost", "example.com/keep", "foregroundDeletion"})
	object.SetManagedFields([]metav1.ManagedFieldsEntry{
		entry("node1", "Apply", ""), entry("node1-fin", "Apply", ""), entry("dp-node1", "Apply", ""),
		entry("lost-fin", "Apply", ""),
		entry("helm", "Apply", ""), entry("akri-agent", "Update", ""), entry("akri-agent.node1", "Apply", "status"), entry("node1", "Update", ""),
	})
	traces := TracesOn(object, map[string]bool{"node1": true, "node2": true})
	if traces == nil || !slices.Equal(traces.Finalizers, []string{"lost", "node1"}) ||
		!slices.Equal(traces.Managers, []string{"dp-node1", "lost-fin", "node1", "node1-fin"}) {
		t.Fatalf("got %+v", traces)
	}
	traces.Remove(object)
	if left := object.GetFinalizers(); !slices.Equal(left, []string{"example.com/keep", "foregroundDeletion"}) {
		t.Errorf("finalizers %v are left", left)
	}
	if left := object.GetManagedFields(); len(left) != 4 {
		t.Errorf("field managers %v are left, want the 4 of others", left)
	}
	if again := TracesOn(object, map[string]bool{"node1": true}); again != nil {
		t.Errorf("a second pass finds %+v", again)
	}
}

// TestCleanKeepsAccounts checks which Pods and workloads keep a ServiceAccount of Akri's
// chart: those that do not end with the move.
func TestCleanKeepsAccounts(t *testing.T) {
	agent := daemonSet(oldAgent, "x")
	agent.Selector, agent.Pod.ServiceAccountName = map[string]string{"app": "akri-agent"}, "akri-agent-sa"
	account := Object{"serviceaccounts", "default", "akri-agent-sa"}
	for name, test := range map[string]struct {
		user User
		keep bool
	}{
		"a Pod of the agents on a node that is down": {
			User{"Pod", "default", "agent-1", "akri-agent-sa", map[string]string{"app": "akri-agent", "hash": "1"}}, false,
		},
		"the agents":                {User{"DaemonSet", "default", oldAgent, "akri-agent-sa", nil}, false},
		"a Deployment of that name": {User{"Deployment", "default", oldAgent, "akri-agent-sa", nil}, true},
		"a Pod of a user":           {User{"Pod", "default", "tool", "akri-agent-sa", map[string]string{"app": "tool"}}, true},
		"another namespace":         {User{"Pod", "plant", "tool", "akri-agent-sa", nil}, false},
		"another ServiceAccount":    {User{"Pod", "default", "tool", "akri-tool", nil}, false},
	} {
		facts := Facts{Workloads: []Workload{agent}, Left: []Object{account}, Users: []User{test.user}}
		actions := facts.chart()
		if len(actions) != 1 || actions[0].Object != account || actions[0].Keep != test.keep {
			t.Errorf("%s: got %v, want the ServiceAccount kept: %t", name, actions, test.keep)
		}
	}
}

// TestCleanRefuses checks that nothing is removed before the move is complete.
func TestCleanRefuses(t *testing.T) {
	controller := Workload{Kind: "Deployment", Name: newController, Desired: 1, Ready: 1, Running: 1}
	agent := Workload{Kind: "DaemonSet", Name: newAgent, Desired: 2, Ready: 2, Running: 2}
	old := daemonSet(oldAgent, "x")
	nodes := map[string]bool{"node1": true}
	running, starting, restarted := old, agent, old
	running.Running, starting.Ready, restarted.Desired = 1, 1, 1
	none := agent
	none.Ready = 0
	for name, test := range map[string]struct {
		facts Facts
		want  string
	}{
		"Complete":       {Facts{Workloads: []Workload{controller, agent, old}, Nodes: nodes}, ""},
		"OldAgentEnds":   {Facts{Workloads: []Workload{controller, agent, running}, Nodes: nodes}, "still runs"},
		"OldAgentStarts": {Facts{Workloads: []Workload{controller, agent, restarted}, Nodes: nodes}, "still runs"},
		"NotInstalled":   {Facts{Workloads: []Workload{old}, Nodes: nodes}, "no new controller"},
		"NoNewAgents":    {Facts{Workloads: []Workload{controller, old}, Nodes: nodes}, "no new agent"},
		"NotReady":       {Facts{Workloads: []Workload{controller, starting}, Nodes: nodes}, "1 of 2 Pods are ready"},
		"OldAgentAway":   {Facts{Workloads: []Workload{controller, agent, running}, Nodes: nodes, Down: []string{"node2"}}, ""},
		"NodeAway":       {Facts{Workloads: []Workload{controller, starting}, Nodes: nodes, Down: []string{"node2"}}, ""},
		"NoneReady":      {Facts{Workloads: []Workload{controller, none}, Nodes: nodes, Down: []string{"node1", "node2"}}, "0 of 2 Pods"},
		"UnknownNodes":   {Facts{Workloads: []Workload{controller, agent}}, "nodes"},
	} {
		_, err := Clean(&test.facts)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"kubelet.rootDir=/var/lib/k0s": "kubelet.rootDir=/var/lib/k0s",
		"a b":                          "'a b'",
		"$(reboot)":                    "'$(reboot)'",
		"it's":                         `'it'\''s'`,
		"":                             "''",
	} {
		if got := quote(word); got != want {
			t.Errorf("quote(%q) = %s, want %s", word, got, want)
		}
	}
}

// node returns a node with labels and the status of its condition Ready.
func node(name string, isReady corev1.ConditionStatus, labels map[string]string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: isReady}}},
	}
}

const pulledManifests = `# Source: akri/templates/agent.yaml
apiVersion: apps/v1
kind: DaemonSet
spec: {template: {spec: {imagePullSecrets: [{name: mirror}], containers: [{image: r/agent:v1, imagePullPolicy: Always}]}}}
---
apiVersion: apps/v1
kind: DaemonSet
spec: {template: {spec: {nodeSelector: {usb: "true"}, initContainers: [{image: r/agent:v1}], containers: [{image: r/discovery:v1}]}}}
---
apiVersion: v1
kind: Service
spec: {template: not a Pod}
---
apiVersion: apps/v1
kind: Deployment
spec: {template: {spec: {nodeSelector: {control: "true"}, containers: [{image: r/controller:v1}]}}}
`

// TestPulls checks which images each node pulls.
func TestPulls(t *testing.T) {
	nodes := []corev1.Node{
		node("away", corev1.ConditionUnknown, nil),
		node("windows", corev1.ConditionTrue, map[string]string{corev1.LabelOSStable: "windows"}),
		node("one", corev1.ConditionTrue, nil),
		node("two", corev1.ConditionTrue, map[string]string{corev1.LabelOSStable: "linux", "usb": "true"}),
		node("three", corev1.ConditionTrue, nil),
	}
	pods, skipped, err := Pulls(pulledManifests, nodes, "akri-system")
	if err != nil || !slices.Equal(skipped, []string{"away"}) {
		t.Fatal(skipped, err)
	}
	got := map[string]string{}
	for _, pod := range pods {
		var images []string
		for _, container := range pod.Spec.Containers {
			images = append(images, container.Image)
		}
		got[pod.Spec.NodeName] = strings.Join(images, " ")
		if secrets := pod.Spec.ImagePullSecrets; len(secrets) != 1 || secrets[0].Name != "mirror" {
			t.Errorf("%s has the pull secrets %v", pod.Spec.NodeName, secrets)
		}
		if first := pod.Spec.Containers[0]; first.ImagePullPolicy != corev1.PullAlways {
			t.Errorf("%s has the pull policy %s", pod.Spec.NodeName, first.ImagePullPolicy)
		}
	}
	want := map[string]string{
		"one": "r/agent:v1 r/discovery:v1 r/controller:v1", "two": "r/agent:v1 r/discovery:v1", "three": "r/agent:v1",
	}
	if !maps.Equal(got, want) {
		t.Errorf("the nodes pull %v, want %v", got, want)
	}
	if _, _, err := Pulls("", nodes, "akri-system"); err == nil || !strings.Contains(err.Error(), "helm template") {
		t.Errorf("without manifests, as if helm template had failed: %v", err)
	}
	if _, _, err := Pulls(pulledManifests, nodes[:2], "akri-system"); err == nil {
		t.Error("no node is ready, but there is no error")
	}
}

// TestPulled checks what is waited for, and what is a failure.
func TestPulled(t *testing.T) {
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "cause"}}
	}
	ended := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "StartError", Message: "cause"}}
	}
	for name, test := range map[string]struct {
		phase  corev1.PodPhase
		state  corev1.ContainerState
		pulled bool
		err    string
	}{
		"new":                     {phase: corev1.PodPending},
		"being pulled":            {phase: corev1.PodPending, state: waiting("ContainerCreating")},
		"not pulled at once":      {phase: corev1.PodPending, state: waiting("ErrImagePull")},
		"not pulled":              {phase: corev1.PodPending, state: waiting("ImagePullBackOff"), err: "agent:v1: ImagePullBackOff: cause"},
		"no name":                 {phase: corev1.PodPending, state: waiting("InvalidImageName"), err: "InvalidImageName"},
		"runs":                    {phase: corev1.PodRunning, state: ended(0)},
		"has run":                 {phase: corev1.PodSucceeded, state: ended(0), pulled: true},
		"of another architecture": {phase: corev1.PodFailed, state: ended(128), err: "ended with 128: StartError: cause"},
		"refused by the kubelet":  {phase: corev1.PodFailed, state: waiting(""), err: "refused the Pod: OutOfpods"},
	} {
		pod := &corev1.Pod{
			Spec: corev1.PodSpec{NodeName: "one", Containers: []corev1.Container{{Name: "image-0", Image: "r/agent:v1"}}},
			Status: corev1.PodStatus{
				Phase: test.phase, Reason: "OutOfpods", ContainerStatuses: []corev1.ContainerStatus{{Name: "image-0", State: test.state}},
			},
		}
		pulled, err := Pulled(pod)
		if pulled != test.pulled || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: pulled %t, %v; want %t, %q", name, pulled, err, test.pulled, test.err)
		}
	}
}

// TestNothingStoppedBeforePull checks that no command of the plan changes the cluster
// before the new images were pulled, with each installer.
func TestNothingStoppedBeforePull(t *testing.T) {
	agent := daemonSet("akri-agent-daemonset", "ghcr.io/project-akri/akri/agent:v0.13.8")
	for name, options := range map[string]PlanOptions{
		"helm":          {Installer: Helm, Source: "akri-1.2.3.tgz", Set: []string{"image.registry=a b"}},
		"kubectl":       {Installer: Kubectl, Source: "checkout"},
		"kustomization": {Installer: Kubectl, Source: "mine", Kustomization: true},
	} {
		options.Namespace = "akri-system"
		steps := Plan(&Facts{Workloads: []Workload{agent}}, options)
		commands := strings.Join(steps[0].Commands, "\n")
		want := map[string]string{
			"helm": "helm template akri akri-1.2.3.tgz -n akri-system \\\n  --set crds.guard=false \\\n  --set 'image.registry=a b' \\\n" +
				"  | kubectl akri migrate pull -n akri-system",
			"kubectl":       "kubectl kustomize checkout/config/default | kubectl akri migrate pull -n akri-system",
			"kustomization": "kubectl kustomize mine | kubectl akri migrate pull -n akri-system",
		}[name]
		if commands != "kubectl akri migrate check\n"+want {
			t.Errorf("%s: the first step is\n%s", name, commands)
		}
	}
}

// TestPlanGoesOn checks what the plan contains after a run of its script that has ended
// somewhere.
func TestPlanGoesOn(t *testing.T) {
	workload := func(kind, namespace, name string, desired, ready int32) Workload {
		return Workload{Kind: kind, Namespace: namespace, Name: name, Desired: desired, Running: desired, Ready: ready}
	}
	controller, agent := workload("Deployment", "default", oldController, 0, 0), workload("DaemonSet", "default", oldAgent, 0, 0)
	agent.Pod.NodeSelector = map[string]string{stopped: "true"}
	handler := workload("DaemonSet", "akri-system", "akri-udev-discovery", 1, 1)
	handler.Labels = map[string]string{"app.kubernetes.io/part-of": "akri"}
	complete := []Workload{
		controller, agent, handler,
		workload("Deployment", "akri-system", newController, 1, 1), workload("Deployment", "akri-system", newWebhook, 1, 1),
		workload("DaemonSet", "akri-system", newAgent, 2, 2),
	}
	unready := slices.Clone(complete)
	unready[len(unready)-1].Ready = 1
	ending := slices.Clone(complete[:2])
	ending[1].Running = 1
	ours := []Definition{{Status: true}}
	const (
		upgrade = "helm upgrade --install akri c.tgz -n akri-system"
		pull    = "migrate pull"
		stop    = "kubectl patch -n default"
		save    = "> akri-definitions.yaml"
		enabled = "handlers.udev.enabled=true"
		wait    = "--for=delete"
		pending = "kubectl delete secret -n akri-system sh.helm.release.v1.akri.v1"
	)
	for name, test := range map[string]struct {
		facts Facts
		want  []string // the others of the above are missing
	}{
		"before Akri was stopped": {Facts{Workloads: []Workload{
			workload("Deployment", "default", oldController, 1, 1), workload("DaemonSet", "default", oldAgent, 2, 2),
		}}, []string{upgrade, pull, stop, wait, save}},
		"while the agents end":     {Facts{Workloads: ending}, []string{upgrade, pull, wait, save}},
		"before the definitions":   {Facts{Workloads: complete[:2]}, []string{upgrade, pull, save}},
		"after the definitions":    {Facts{Workloads: complete[:2], Definitions: ours}, []string{upgrade, pull}},
		"before agents were ready": {Facts{Workloads: unready, Definitions: ours}, []string{upgrade, pull, enabled}},
		"while helm ran": {Facts{Workloads: complete[:2], Definitions: ours, Pending: []Object{
			{"secrets", "akri-system", "sh.helm.release.v1.akri.v1"}, {"secrets", "other", "sh.helm.release.v1.akri.v7"},
		}}, []string{upgrade, pull, pending}},
		"after the installation": {Facts{Workloads: complete, Definitions: ours}, nil},
	} {
		var script strings.Builder
		if err := PrintPlan(&script, &test.facts, PlanOptions{Installer: Helm, Source: "c.tgz", Namespace: "akri-system"}); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{upgrade, pull, stop, save, enabled, wait, pending, "akri.v7"} {
			if got := strings.Contains(script.String(), part); got != slices.Contains(test.want, part) {
				t.Errorf("%s: %q is in the script: %t\n%s", name, part, got, script.String())
			}
		}
	}
}
