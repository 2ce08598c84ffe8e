package helm_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"akri.sh/akri/charts/helm"
)

var (
	crds           = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	configurations = schema.GroupVersionResource{Group: "akri.sh", Version: "v0", Resource: "configurations"}
	deployments    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

var crdNames = []string{"configurations.akri.sh", "instances.akri.sh"}

// camera has a Configuration. No webhook and no Jobs run on the API server of the test.
const camera = `
webhook: {failurePolicy: Ignore}
hooks: {enabled: false}
configurations:
- name: cameras
  spec: {discoveryHandler: {name: onvif, discoveryDetails: "{}"}, capacity: 2}
`

// TestInstall installs, upgrades, rolls back and uninstalls on a real API server, which
// validates all objects. It has CustomResourceDefinitions that are not Helm's, as Akri's
// chart leaves them.
func TestInstall(t *testing.T) {
	client, akri := releaseOn(t)
	ctx := t.Context()

	_, err := akri.Install(ctx, parse(t, camera))
	if err == nil || !strings.Contains(err.Error(), "kubectl annotate crd configurations.akri.sh instances.akri.sh") {
		t.Fatalf("the definitions belong to nobody, but: %v", err)
	}
	adopt(t, client, akri)
	if _, err := akri.Install(ctx, parse(t, camera)); err != nil {
		t.Fatal(err)
	}
	uid := configuration(t, client)
	t.Run("a second release", func(t *testing.T) { testSecond(t, client, akri) })
	t.Run("the original Akri runs", func(t *testing.T) { testOriginal(t, client, akri) })

	for name, values := range valueSets(t) {
		upgraded := parse(t, values)
		set(upgraded, []string{"webhook", "failurePolicy"}, "Ignore")
		if _, err := akri.Upgrade(ctx, upgraded); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := akri.Upgrade(ctx, parse(t, camera+"controller: {replicas: 3}\n")); err != nil {
		t.Fatal(err)
	}
	if got := configuration(t, client); got == uid {
		t.Error("the Configuration was kept, although it was not in the values in between")
	}
	if err := akri.Rollback(1); err != nil {
		t.Fatal(err)
	}
	controller, err := client.Resource(deployments).Namespace(akri.Namespace).Get(ctx, "akri-controller", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if replicas, _, _ := unstructured.NestedInt64(controller.Object, "spec", "replicas"); replicas != 1 {
		t.Errorf("%d replicas after the rollback", replicas)
	}
	if err := akri.Uninstall(); err != nil {
		t.Fatal(err)
	}
	for _, name := range crdNames {
		if _, err := client.Resource(crds).Get(ctx, name, metav1.GetOptions{}); err != nil {
			t.Errorf("uninstalling did not keep %s: %v", name, err)
		}
	}
	_, err = client.Resource(deployments).Namespace(akri.Namespace).Get(ctx, "akri-controller", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the controller after uninstalling: %v", err)
	}
	if _, err := akri.Install(ctx, parse(t, camera)); err != nil {
		t.Errorf("install again: %v", err)
	}
}

// testSecond checks that a release with only a Configuration lives next to the first.
func testSecond(t *testing.T, client dynamic.Interface, akri *helm.Release) {
	second := *akri
	second.Name = "more"
	const values = "{controller: {enabled: false}, agent: {enabled: false}, webhook: {enabled: false}, " +
		"configurations: [{name: more, spec: {discoveryHandler: {name: onvif}}}]}"
	if _, err := second.Install(t.Context(), parse(t, values)); err != nil {
		t.Fatal(err)
	}
	more := client.Resource(configurations).Namespace(akri.Namespace)
	if _, err := more.Get(t.Context(), "more", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if err := second.Uninstall(); err != nil {
		t.Fatal(err)
	}
	if _, err := more.Get(t.Context(), "more", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after uninstalling: %v", err)
	}
	if _, err := client.Resource(crds).Get(t.Context(), crdNames[0], metav1.GetOptions{}); err != nil {
		t.Errorf("the definitions of the first release: %v", err)
	}
}

// testOriginal checks that the chart is not installed next to a running controller of the
// original Akri, but next to one that was scaled to 0.
func testOriginal(t *testing.T, client dynamic.Interface, akri *helm.Release) {
	original := client.Resource(deployments).Namespace(akri.Namespace)
	deployment := &unstructured.Unstructured{Object: parse(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: akri-controller-deployment}
spec:
  replicas: 1
  selector: {matchLabels: {app: akri}}
  template:
    metadata: {labels: {app: akri}}
    spec: {containers: [{name: controller, image: example/none}]}
`)}
	if _, err := original.Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := akri.Upgrade(t.Context(), parse(t, camera))
	if err == nil || !strings.Contains(err.Error(), "kubectl akri migrate check") {
		t.Errorf("the controller of the original Akri runs, but: %v", err)
	}
	stopped := []byte(`{"spec": {"replicas": 0}}`)
	if _, err := original.Patch(t.Context(), deployment.GetName(), types.MergePatchType, stopped, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := akri.Upgrade(t.Context(), parse(t, camera)); err != nil {
		t.Error(err)
	}
}

// valueSets are values with many options, which the API server accepts.
func valueSets(t *testing.T) map[string]string {
	t.Helper()
	sets := map[string]string{
		"everything": read(t, "testdata/everything.values.yaml"),
		"minimal":    "{webhook: {enabled: false}, rbac: {enabled: true}}",
	}
	files, err := filepath.Glob("../akri/examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if filepath.Base(file) != "cert-manager.yaml" { // whose kinds the API server does not have
			sets[file] = read(t, file)
		}
	}
	return sets
}

// releaseOn starts an API server, and returns a release of the chart on it that is not
// installed.
func releaseOn(t *testing.T) (dynamic.Interface, *helm.Release) {
	t.Helper()
	config := apiServer(t)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	akri := release()
	akri.Kubeconfig = kubeconfig(t, config)
	_, err = akri.Install(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "this is the source of the chart") {
		t.Fatalf("install the chart's source: %v", err)
	}
	if akri.Chart, err = helm.Load("v1.2.3"); err != nil {
		t.Fatal(err)
	}
	return client, akri
}

// adopt does what the chart's message says.
func adopt(t *testing.T, client dynamic.Interface, akri *helm.Release) {
	t.Helper()
	patch := `{"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {
		"meta.helm.sh/release-name": "` + akri.Name + `", "meta.helm.sh/release-namespace": "` + akri.Namespace + `"}}}`
	for _, name := range crdNames {
		_, err := client.Resource(crds).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// configuration returns the UID of the Configuration of the values.
func configuration(t *testing.T, client dynamic.Interface) types.UID {
	t.Helper()
	c, err := client.Resource(configurations).Namespace("akri-system").Get(context.WithoutCancel(t.Context()), "cameras", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c.GetUID()
}

// apiServer starts an API server with Akri's CustomResourceDefinitions. The test is
// skipped if it has not been built, unless AKRI_TEST_REQUIRED is 1.
func apiServer(t *testing.T) *rest.Config {
	t.Helper()
	assets, err := filepath.Abs("../../bin/k8s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(assets, "kube-apiserver")); err != nil {
		if os.Getenv("AKRI_TEST_REQUIRED") == "1" {
			t.Fatalf("%v: run make kubernetes", err)
		}
		t.Skipf("%v: run make kubernetes", err)
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory: assets,
		CRDDirectoryPaths:     []string{"../../config/crd"},
		ErrorIfCRDPathMissing: true,
		CRDInstallOptions:     envtest.CRDInstallOptions{MaxTime: time.Minute},
		// Machines that run all tests at once are slow.
		ControlPlaneStartTimeout: time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	config, err := environment.Start()
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// kubeconfig writes a file with the credentials of a client.
func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	api := clientcmdapi.NewConfig()
	api.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	api.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	api.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	api.CurrentContext = "test"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*api, file); err != nil {
		t.Fatal(err)
	}
	return file
}
