package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/migration"
	"akri.sh/akri/internal/apitest"
)

var update = flag.Bool("update", false, "write the output of the commands to testdata")

// newAkriWorld starts a cluster with the original Akri: its definitions, and the
// objects of files as its chart, agents and controller write them.
func newAkriWorld(t *testing.T, files ...string) *world {
	t.Helper()
	config := apitest.Fresh(t)
	scheme := runtime.NewScheme()
	for _, register := range []func(*runtime.Scheme) error{
		v0.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, rbacv1.AddToScheme, admissionregistrationv1.AddToScheme,
	} {
		if err := register(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{World: &apitest.World{Client: api, T: t, Config: config, Namespace: metav1.NamespaceDefault}}
	w.writeKubeconfig()
	w.define(filepath.Join("testdata", "migrate", "definitions"))
	for _, file := range files {
		w.applyFile(file)
	}
	return w
}

// applyFile applies the documents of a file.
func (w *world) applyFile(file string) {
	w.T.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "migrate", file))
	if err != nil {
		w.T.Fatal(err)
	}
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		w.applyAs(document)
	}
}

// define creates the CustomResourceDefinitions of a directory or replaces them, as Helm
// or kubectl apply --server-side --force-conflicts do.
func (w *world) define(dir string) {
	w.T.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*s.yaml"))
	if err != nil || len(files) != 2 {
		w.T.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			w.T.Fatal(err)
		}
		var definition unstructured.Unstructured
		w.must(yaml.Unmarshal(data, &definition.Object))
		err = w.Create(w.T.Context(), definition.DeepCopy(), client.FieldOwner("helm"))
		if apierrors.IsAlreadyExists(err) {
			apply := client.ApplyConfigurationFromUnstructured(&definition)
			err = w.Client.Apply(w.T.Context(), apply, client.FieldOwner("kubectl"), client.ForceOwnership)
		}
		w.must(err)
	}
	for _, list := range []client.ObjectList{&v0.ConfigurationList{}, &v0.InstanceList{}} {
		w.Eventually("the kinds are served", func() string {
			if err := w.List(w.T.Context(), list); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

var managerComment = regexp.MustCompile(`(?m)^# manager: (\S+)$`)

// applyAs applies a document as the field manager that a comment names, and its status.
// metadata.owner is the name of the owner of an Instance or Pod.
func (w *world) applyAs(document string) {
	w.T.Helper()
	manager := "helm"
	if match := managerComment.FindStringSubmatch(document); match != nil {
		manager = match[1]
	}
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		w.T.Fatalf("%v\n%s", err, document)
	}
	if owner, found, _ := unstructured.NestedString(object.Object, "metadata", "owner"); found {
		unstructured.RemoveNestedField(object.Object, "metadata", "owner")
		w.own(&object, owner)
	}
	status, hasStatus := object.Object["status"]
	delete(object.Object, "status")
	apply := client.ApplyConfigurationFromUnstructured(&object)
	if err := w.Client.Apply(w.T.Context(), apply, client.FieldOwner(manager), client.ForceOwnership); err != nil {
		w.T.Fatalf("%v\n%s", err, document)
	}
	if !hasStatus {
		return
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	if err := w.Get(w.T.Context(), client.ObjectKeyFromObject(&object), live); err != nil {
		w.T.Fatal(err)
	}
	live.Object["status"] = status
	if err := w.Status().Update(w.T.Context(), live); err != nil {
		w.T.Fatalf("%v\n%s", err, document)
	}
}

// own sets the owner reference as Akri does: an Instance belongs to its Configuration,
// a Pod to its Instance.
func (w *world) own(object *unstructured.Unstructured, name string) {
	w.T.Helper()
	owner := &unstructured.Unstructured{}
	owner.SetGroupVersionKind(v0.ConfigurationKind)
	if object.GetKind() != "Instance" {
		owner.SetGroupVersionKind(v0.InstanceKind)
	}
	if err := w.Get(w.T.Context(), client.ObjectKey{Namespace: object.GetNamespace(), Name: name}, owner); err != nil {
		w.T.Fatal(err)
	}
	controller := true
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: name, UID: owner.GetUID(), Controller: &controller,
	}})
}

// addRelease stores a release as Helm does.
func (w *world) addRelease() {
	w.T.Helper()
	release, err := json.Marshal(map[string]any{
		"name": "akri", "namespace": "default", "version": 1,
		"chart":  map[string]any{"metadata": map[string]any{"name": "akri", "version": "0.13.26"}},
		"config": map[string]any{"udev": map[string]any{"discovery": map[string]any{"enabled": true}}},
		"manifest": "---\n# Source: akri/templates/agent.yaml\napiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n  name: akri-agent-daemonset\n" +
			"---\napiVersion: akri.sh/v0\nkind: Configuration\nmetadata:\n  name: cls\n",
		"hooks": []any{
			map[string]any{"name": "akri-cleanup", "kind": "Job", "events": []any{"pre-delete"}},
			map[string]any{"name": "akri-webhook-configuration-create", "kind": "Job", "events": []any{"pre-install", "pre-upgrade"}},
		},
	})
	if err != nil {
		w.T.Fatal(err)
	}
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	if _, err := writer.Write(release); err != nil {
		w.T.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		w.T.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "sh.helm.release.v1.akri.v1",
			Labels: map[string]string{"owner": "helm", "name": "akri", "status": "deployed", "version": "1"},
		},
		Type: "helm.sh/release.v1",
		Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(compressed.Bytes()))},
	}
	if err := w.Create(w.T.Context(), secret); err != nil {
		w.T.Fatal(err)
	}
}

// clusterUID matches the UID of a cluster in a script, which each API server has another of.
var clusterUID = regexp.MustCompile(`= [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12} `)

// golden compares the output of a command with a file.
func (r commandResult) golden(t *testing.T, file string) {
	t.Helper()
	file = filepath.Join("testdata", "migrate", file)
	got := clusterUID.ReplaceAllString(r.out+r.err, "= UID ")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the output differs from %s:\n%s", file, got)
	}
}

// TestMigrate moves a cluster in which nothing is in the way, and then has everything
// that this Akri treats differently.
func TestMigrate(t *testing.T) {
	w := newAkriWorld(t, "installation.yaml", "healthy.yaml")
	w.addRelease()

	before := w.stored()
	check := w.run("", "migrate", "check")
	check.want(t, 0)
	check.golden(t, "healthy.check.txt")
	w.run("", "migrate", "plan").want(t, 2, "--source: name the chart", "make push chart")
	plan := w.run("", "migrate", "plan", "--source", "akri-1.2.3.tgz", "--set", "image.pullSecrets[0].name=registry")
	plan.golden(t, "healthy.plan.txt")
	t.Run("another cluster", func(t *testing.T) { w.testElsewhere(t, plan.out) })
	w.run("", "migrate", "plan", "--install", "kubectl", "--source", "akri", "--replace-handlers").golden(t, "healthy.replace.txt")
	w.run("", "migrate", "check", "-o", "json").want(t, 0, `"severity": "changes"`, `"outcome": "kept"`)
	w.run("", "migrate", "clean", "--yes").want(t, 1, "Deployment default/akri-controller-deployment still runs")
	if !slices.Equal(before, w.stored()) {
		t.Error("something was written")
	}

	w.applyFile("troubled.yaml")
	check = w.run("", "migrate", "check")
	check.want(t, 1)
	check.golden(t, "troubled.check.txt")
	w.run("", "migrate", "plan", "--source", "akri-1.2.3.tgz").golden(t, "troubled.plan.txt")

	w.applyFile("shared.yaml")
	w.stopAkri()
	w.run("", "migrate", "clean", "--yes").want(t, 1, "no new controller is installed")
	w.define(filepath.Join("..", "..", "config", "crd"))
	w.run("", "migrate", "plan", "--source", "akri-1.2.3.tgz").golden(t, "interrupted.plan.txt")
	w.startNew()
	dryRun := w.run("", "migrate", "clean", "--dry-run")
	dryRun.want(t, 0)
	dryRun.golden(t, "clean.txt")
	w.testIdleUsers(t)
	w.run("n\n", "migrate", "clean").want(t, 1, "[y/N]", "nothing was removed")
	w.cleanInterrupted(dryRun.out)
	w.run("", "migrate", "clean").want(t, 0, "has left nothing")
	w.assertClean()
}

// testIdleUsers checks that a ServiceAccount is kept for what runs as it, although it has
// no Pod now.
func (w *world) testIdleUsers(t *testing.T) {
	idle := metav1.ObjectMeta{Name: "idle", Namespace: metav1.NamespaceDefault, Labels: map[string]string{"app": "idle"}}
	pod := corev1.PodTemplateSpec{ObjectMeta: idle, Spec: corev1.PodSpec{
		ServiceAccountName: "akri-controller-sa", Containers: []corev1.Container{{Name: "idle", Image: "idle"}},
	}}
	set := &appsv1.StatefulSet{ObjectMeta: idle, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: idle.Labels}, Template: pod,
	}}
	job := &batchv1.CronJob{ObjectMeta: idle, Spec: batchv1.CronJobSpec{Schedule: "@monthly"}}
	job.Spec.JobTemplate.Spec.Template = *pod.DeepCopy()
	job.Spec.JobTemplate.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	for kind, object := range map[string]client.Object{"StatefulSet": set, "CronJob": job} {
		w.must(w.Create(t.Context(), object))
		w.run("", "migrate", "clean", "--dry-run").want(t, 0,
			"keep serviceaccounts default/akri-controller-sa: "+kind+" default/idle runs as it")
		w.must(w.Delete(t.Context(), object))
	}
}

// cleanInterrupted removes what the dry run has listed by runs that each end after one
// removal, but for the last, which removes two and says so.
func (w *world) cleanInterrupted(dryRun string) {
	w.T.Helper()
	var listed []string
	for line := range strings.Lines(dryRun) {
		if !strings.HasPrefix(line, "keep ") {
			listed = append(listed, strings.TrimSpace(line))
		}
	}
	ctx := w.T.Context()
	a := access{kubeconfig: w.kubeconfig}
	for i, want := range listed[:len(listed)-2] {
		api, facts, err := a.survey(ctx, cli.Streams{Err: w.T.Output()})
		w.must(err)
		actions, err := migration.Clean(facts)
		w.must(err)
		actions = slices.DeleteFunc(actions, func(action migration.Action) bool { return action.Keep })
		if len(actions) != len(listed)-i || actions[0].String() != want {
			w.T.Fatalf("run %d would remove\n%v\nwant\n%s", i, actions, strings.Join(listed[i:], "\n"))
		}
		w.must(api.remove(ctx, actions[0]))
	}
	w.run("y\n", "migrate", "clean").want(w.T, 0, "2 removed\n", "[y/N]")
}

// assertClean checks that what Akri's agents left is gone, and nothing else.
func (w *world) assertClean() {
	w.T.Helper()
	var configurations v0.ConfigurationList
	w.must(w.List(w.T.Context(), &configurations))
	var instances v0.InstanceList
	w.must(w.List(w.T.Context(), &instances))
	if len(configurations.Items) != 7 || len(instances.Items) != 4 {
		w.T.Errorf("%d Configurations and %d Instances, want 7 and 4", len(configurations.Items), len(instances.Items))
	}
	for i := range configurations.Items {
		if left := configurations.Items[i].Finalizers; len(left) > 0 {
			w.T.Errorf("Configuration %s has the finalizers %v", configurations.Items[i].Name, left)
		}
	}
	for i := range instances.Items {
		instance := &instances.Items[i]
		if len(instance.Finalizers) > 0 {
			w.T.Errorf("Instance %s has the finalizers %v", instance.Name, instance.Finalizers)
		}
		for _, entry := range instance.ManagedFields {
			if entry.Operation == metav1.ManagedFieldsOperationApply {
				w.T.Errorf("Instance %s: field manager %s still owns fields", instance.Name, entry.Manager)
			}
		}
	}
	var instance v0.Instance
	w.Read("cls-8120fe", &instance)
	usage := instance.Spec.DeviceUsage
	if len(instance.Spec.Nodes) != 2 || usage["cls-8120fe-0"] != "node1" || usage["cls-8120fe-1"] != "node2" {
		w.T.Errorf("the contents have changed: %+v", instance.Spec)
	}
	const ofPlant = "akri-webhook-configuration-of-the-plant"
	w.must(w.Get(w.T.Context(), client.ObjectKey{Name: ofPlant}, &admissionregistrationv1.ValidatingWebhookConfiguration{}))
	w.Read("akri-agent-sa", &corev1.ServiceAccount{})
	w.Read("pod-readers", &rbacv1.RoleBinding{})
	for _, name := range []string{"akri-controller-role", "akri-agent-role"} {
		w.must(w.Get(w.T.Context(), client.ObjectKey{Name: name}, &rbacv1.ClusterRole{}))
	}
	w.must(w.Get(w.T.Context(), client.ObjectKey{Name: "akri-agent-binding"}, &rbacv1.ClusterRoleBinding{}))
}

// stored returns all objects that a command could change.
func (w *world) stored() []string {
	w.T.Helper()
	var all []string
	for _, list := range []client.ObjectList{
		&v0.ConfigurationList{}, &v0.InstanceList{}, &appsv1.DeploymentList{}, &appsv1.DaemonSetList{}, &corev1.PodList{}, &corev1.SecretList{},
	} {
		if err := w.List(w.T.Context(), list); err != nil {
			w.T.Fatal(err)
		}
		all = append(all, list.GetResourceVersion())
		data, err := json.Marshal(list)
		if err != nil {
			w.T.Fatal(err)
		}
		all[len(all)-1] = string(data[strings.Index(string(data), `"items"`):])
	}
	return all
}

// stopAkri does what the kubelets and controllers do after the steps of the plan.
func (w *world) stopAkri() {
	w.T.Helper()
	var controller appsv1.Deployment
	w.Read("akri-controller-deployment", &controller)
	controller.Spec.Replicas = new(int32)
	w.must(w.Update(w.T.Context(), &controller))
	controller.Status = appsv1.DeploymentStatus{}
	w.must(w.Status().Update(w.T.Context(), &controller))
	var agent appsv1.DaemonSet
	w.Read("akri-agent-daemonset", &agent)
	agent.Spec.Template.Spec.NodeSelector = map[string]string{"akri.sh/stopped": "true"}
	w.must(w.Update(w.T.Context(), &agent))
	agent.Status = appsv1.DaemonSetStatus{}
	w.must(w.Status().Update(w.T.Context(), &agent))
}

// startNew adds the new controller and agents, which own what they write to Instances.
func (w *world) startNew() {
	w.T.Helper()
	for _, text := range []string{
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: akri-controller, namespace: default}\n" + podTemplate +
			"status: {replicas: 1, readyReplicas: 1, availableReplicas: 1}\n",
		"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: akri-agent, namespace: default}\n" + podTemplate +
			"status: {desiredNumberScheduled: 2, currentNumberScheduled: 2, numberReady: 2, numberMisscheduled: 0}\n",
	} {
		w.applyAs(text)
	}
	var instances v0.InstanceList
	w.must(w.List(w.T.Context(), &instances))
	for i := range instances.Items {
		before := instances.Items[i].DeepCopy()
		instance := &instances.Items[i]
		instance.Labels = map[string]string{v0.LabelConfiguration: instance.Spec.ConfigurationName}
		for _, node := range instance.Spec.Nodes {
			instance.Labels[v0.NodeLabel(node)] = ""
		}
		w.must(w.Patch(w.T.Context(), instance, client.MergeFrom(before), client.FieldOwner(v0.FieldManagerAgent)))
	}
}

const podTemplate = "spec: {selector: {matchLabels: {app: new}}, template: {metadata: {labels: {app: new}}, " +
	"spec: {containers: [{name: akri, image: akri}]}}}\n"

func (w *world) must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}
