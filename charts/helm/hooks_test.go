package helm_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"akri.sh/akri/charts/helm"
)

// reviewed has a Configuration that a hook of "helm install" creates.
const reviewed = `
webhook: {failurePolicy: Fail}
hooks: {timeoutSeconds: 30}
configurations:
- name: cameras
  spec: {discoveryHandler: {name: onvif, discoveryDetails: "{}"}, capacity: 2}
`

// TestConfigurationsFromTheFirstRevision checks that the Configurations in the values exist after
// the first "helm install", stay the same objects when the next revision takes them over, and
// when Helm returns to the first, which does not contain them.
func TestConfigurationsFromTheFirstRevision(t *testing.T) {
	w := newHookWorld(t)
	installed, err := w.akri.Install(t.Context(), parse(t, reviewed))
	if err != nil {
		t.Fatalf("%v: %s", err, w.jobs.output("akri-post-install"))
	}
	if strings.Contains(installed.Manifest, "\nkind: Configuration\n") || strings.Contains(installed.Info.Notes, "ONE MORE STEP") {
		t.Errorf("want it created by the hook, but the manifest has it, or the notes ask for a step:\n%s", installed.Info.Notes)
	}
	before := configuration(t, w.client)
	w.assertNothingLeft("akri-post-install")

	more := strings.Replace(reviewed, "capacity: 2", "capacity: 3, brokerProperties: {A: b}", 1)
	for _, values := range []string{reviewed, more} {
		w.upgrade(values)
		if configuration(t, w.client) != before {
			t.Error("the upgrade has replaced the Configuration")
		}
	}
	if err := w.akri.Rollback(1); err != nil {
		t.Fatalf("%v: %s", err, w.jobs.output("akri-post-install"))
	}
	cameras, err := w.configurations().Get(t.Context(), "cameras", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	capacity, _, _ := unstructured.NestedInt64(cameras.Object, "spec", "capacity")
	properties, _, _ := unstructured.NestedMap(cameras.Object, "spec", "brokerProperties")
	if cameras.GetUID() != before || capacity != 2 || len(properties) > 0 || cameras.GetAnnotations()["helm.sh/resource-policy"] != "" {
		t.Errorf("after the rollback to the first revision: %v", cameras.Object)
	}
	// The next revision is a change as any other.
	w.upgrade(more)
	if configuration(t, w.client) != before {
		t.Error("the upgrade after the rollback has replaced the Configuration")
	}

	unhooked := *w.akri
	unhooked.NoHooks = true
	if err := unhooked.Rollback(1); err != nil {
		t.Fatal(err)
	}
	if _, err := w.configurations().Get(t.Context(), "cameras", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after a rollback without hooks: %v", err)
	}
	w.assertNothingLeft("akri-pre-rollback")
}

// TestUninstallFinalizes uninstalls a release with a Configuration that has a finalizer,
// which only the controller removes.
func TestUninstallFinalizes(t *testing.T) {
	w := newHookWorld(t)
	if _, err := w.akri.Install(t.Context(), parse(t, reviewed)); err != nil {
		t.Fatal(err)
	}
	finalizer := func(text string) {
		t.Helper()
		patch := []byte(`{"metadata": {"finalizers": ` + text + `}}`)
		if _, err := w.configurations().Patch(t.Context(), "cameras", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// It has the labels of the release, but is the user's.
	copied := parse(t, `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: copied, labels: {app.kubernetes.io/managed-by: Helm, app.kubernetes.io/instance: akri}}
spec: {discoveryHandler: {name: onvif, discoveryDetails: "{}"}}
`)
	if _, err := w.configurations().Create(t.Context(), &unstructured.Unstructured{Object: copied}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	finalizer(`["akri.sh/cleanup"]`)
	if err := w.akri.Uninstall(); err == nil || !strings.Contains(err.Error(), "akri-pre-delete") {
		t.Fatalf("the controller does not run, but: %v", err)
	}
	for _, part := range []string{
		"Configuration akri-system/cameras (finalizers: akri.sh/cleanup)", "--no-hooks", "logs deployment/akri-controller",
	} {
		if output := w.jobs.output("akri-pre-delete"); !strings.Contains(output, part) {
			t.Errorf("the hook does not say %q:\n%s", part, output)
		}
	}
	controllers := w.client.Resource(deployments).Namespace(w.akri.Namespace)
	if _, err := controllers.Get(t.Context(), "akri-controller", metav1.GetOptions{}); err != nil {
		t.Errorf("the controller, which must remove the finalizer: %v", err)
	}

	finalizer(`[]`)
	if err := w.akri.Uninstall(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.configurations().Get(t.Context(), "cameras", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Configuration after uninstalling: %v", err)
	}
	if _, err := w.configurations().Get(t.Context(), "copied", metav1.GetOptions{}); err != nil {
		t.Errorf("the user's Configuration after uninstalling: %v", err)
	}
	w.assertNothingLeft("akri-pre-delete")
}

// hookWorld is an API server with a release whose hooks run.
type hookWorld struct {
	t      *testing.T
	client dynamic.Interface
	core   kubernetes.Interface
	akri   *helm.Release
	jobs   *jobRunner
}

func newHookWorld(t *testing.T) *hookWorld {
	t.Helper()
	config, client, akri := releaseOn(t)
	// As in a new cluster, the kinds come with the release.
	for _, name := range crdNames {
		if err := client.Resource(crds).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &hookWorld{t: t, client: client, core: core, akri: akri, jobs: runJobs(t, config, akri)}
}

func (w *hookWorld) configurations() dynamic.ResourceInterface {
	return w.client.Resource(configurations).Namespace(w.akri.Namespace)
}

// upgrade upgrades the release where no webhook runs.
func (w *hookWorld) upgrade(values string) {
	w.t.Helper()
	if err := w.jobs.removeRegistration(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.akri.Upgrade(w.t.Context(), parse(w.t, values)); err != nil {
		w.t.Fatal(err)
	}
	if err := w.jobs.removeRegistration(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	// The API server calls the webhook until it has seen that.
	probe := parse(w.t, `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: probe}
spec: {discoveryHandler: {name: onvif, discoveryDetails: "{}"}}
`)
	var refused error
	err := wait.PollUntilContextTimeout(w.t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		_, refused = w.configurations().Create(ctx, &unstructured.Unstructured{Object: probe}, dryRun)
		return refused == nil, nil
	})
	if err != nil {
		w.t.Fatal(refused)
	}
}

// assertNothingLeft fails the test if an object of a hook still exists.
func (w *hookWorld) assertNothingLeft(name string) {
	w.t.Helper()
	ctx, options := w.t.Context(), metav1.GetOptions{}
	_, job := w.core.BatchV1().Jobs(w.akri.Namespace).Get(ctx, name, options)
	_, account := w.core.CoreV1().ServiceAccounts(w.akri.Namespace).Get(ctx, name, options)
	_, role := w.core.RbacV1().ClusterRoles().Get(ctx, name, options)
	_, list := w.core.CoreV1().ConfigMaps(w.akri.Namespace).Get(ctx, name, options)
	_, binding := w.core.RbacV1().ClusterRoleBindings().Get(ctx, name, options)
	for kind, err := range map[string]error{
		"Job": job, "ServiceAccount": account, "ClusterRole": role, "ClusterRoleBinding": binding, "ConfigMap": list,
	} {
		if !apierrors.IsNotFound(err) {
			w.t.Errorf("%s %s after the hook: %v", kind, name, err)
		}
	}
}

// jobRunner is the kubelet of Jobs: it runs their program, which is the real one, as their
// ServiceAccount.
type jobRunner struct {
	core    kubernetes.Interface
	akri    *helm.Release
	program string
	dir     string
}

// programs is the folder of the programs that the tests build.
var programs string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if programs, err = os.MkdirTemp("", "akri-programs-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(programs)
		return m.Run()
	}())
}

// controllerProgram builds the program of the hooks and returns its file.
var controllerProgram = sync.OnceValues(func() (string, error) {
	file := filepath.Join(programs, "akri-controller")
	out, err := exec.Command("go", "-C", "../..", "build", "-o", file, "./cmd/akri-controller").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the program of the hooks: %w\n%s", err, out)
	}
	return file, nil
})

// runJobs runs all Jobs until the test ends.
func runJobs(t *testing.T, config *rest.Config, akri *helm.Release) *jobRunner {
	t.Helper()
	r := &jobRunner{akri: akri, dir: t.TempDir()}
	var err error
	if r.program, err = controllerProgram(); err != nil {
		t.Fatal(err)
	}
	if r.core, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

// run runs the Jobs that have neither succeeded nor failed, until ctx is done.
func (r *jobRunner) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(100 * time.Millisecond):
		}
		list, err := r.core.BatchV1().Jobs(r.akri.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("list the Jobs: %w", err)
		}
		if err != nil {
			return nil
		}
		for i := range list.Items {
			job := &list.Items[i]
			if len(job.Status.Conditions) > 0 || job.DeletionTimestamp != nil {
				continue
			}
			if err := r.runJob(ctx, job); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// removeRegistration admits Configurations, as a webhook would. None runs, and the API server must
// not look for one outside of the test.
func (r *jobRunner) removeRegistration(ctx context.Context) error {
	registrations := r.core.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if err := registrations.Delete(ctx, "akri-configurations", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// arguments returns the arguments of a Job's container, with the files of ConfigMaps that it
// mounts in a directory of the test.
func (r *jobRunner) arguments(ctx context.Context, job *batchv1.Job) ([]string, error) {
	pod := job.Spec.Template.Spec
	args := slices.Clone(pod.Containers[0].Args)
	for i, mount := range pod.Containers[0].VolumeMounts {
		list, err := r.core.CoreV1().ConfigMaps(job.Namespace).Get(ctx, pod.Volumes[i].ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		for name, content := range list.Data {
			file := filepath.Join(r.dir, name)
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				return nil, err
			}
			for j := range args {
				args[j] = strings.Replace(args[j], mount.MountPath+"/"+name, file, 1)
			}
		}
	}
	return args, nil
}

// runJob runs the program of a Job and writes the Job's status, as the Job controller does.
func (r *jobRunner) runJob(ctx context.Context, job *batchv1.Job) error {
	pod := job.Spec.Template.Spec
	credentials, err := clientcmd.LoadFromFile(r.akri.Kubeconfig)
	if err != nil {
		return err
	}
	credentials.AuthInfos["test"].Impersonate = "system:serviceaccount:" + job.Namespace + ":" + pod.ServiceAccountName
	file := filepath.Join(r.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*credentials, file); err != nil {
		return err
	}
	args, err := r.arguments(ctx, job)
	if err == nil {
		err = r.removeRegistration(ctx)
	}
	if err != nil {
		return err
	}
	began := metav1.Now()
	program := exec.CommandContext(ctx, r.program, append(args, "--kubeconfig="+file)...)
	out, failed := program.CombinedOutput()
	if err := os.WriteFile(filepath.Join(r.dir, job.Name), out, 0o644); err != nil {
		return err
	}
	now := metav1.Now()
	job.Status = batchv1.JobStatus{StartTime: &began, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}}
	conditions := []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}
	if failed != nil {
		conditions = []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed}
		job.Status.Failed = 1
	} else {
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
	}
	for _, each := range conditions {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: each, Status: corev1.ConditionTrue, LastTransitionTime: now, LastProbeTime: now,
		})
	}
	if _, err := r.core.BatchV1().Jobs(job.Namespace).UpdateStatus(ctx, job, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write the status of the Job %s: %w", job.Name, err)
	}
	return nil
}

// output returns what the last run of a Job has printed.
func (r *jobRunner) output(job string) string {
	out, err := os.ReadFile(filepath.Join(r.dir, job))
	if err != nil {
		return err.Error()
	}
	return string(out)
}
