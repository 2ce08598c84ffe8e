package takeover

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

// original is the namespace of the original Akri.
const original = "original"

// guide runs the commands of docs/migrate-from-akri.md.
type guide struct {
	*world
	shell  akri.Shell
	blocks map[string][]string // by heading
	names  string              // the block that sets the variables, and what they are here
}

// TestPage moves a cluster from the original Akri by the commands of the page as they are
// printed, with each installer, and back: once before cleaning up and once after it.
func TestPage(t *testing.T) {
	clustertest.Full(t)
	root, err := build.Root()
	if err == nil {
		err = akri.BuildHelm(t.Context(), root) // before the cluster starts: it takes the processors
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Run("helm", func(t *testing.T) {
		g := newPage(t, root)
		// One Configuration belongs to the new release, which must not take it along.
		g.names += `OPTIONS="$OPTIONS --set-json configurations=[{\"name\":\"owned\",\"spec\":{\"discoveryHandler\":` +
			`{\"name\":\"debugEcho\",\"discoveryDetails\":\"descriptions:\u0020[]\"}}}]"` + "\n"
		g.move("Install with Helm")
		g.run(g.blocks["Install with Helm"][0]) // the chart creates Configurations when its webhook runs
		configurations := g.uids()
		if !strings.Contains(configurations, "owned ") {
			t.Fatalf("the chart has not created its Configuration: there are\n%s", configurations)
		}
		g.run(g.blocks["The way back"][0])
		g.run(g.blocks["The way back"][2:]...)
		g.assertBack(configurations)
	})
	t.Run("kubectl", func(t *testing.T) {
		g := newPage(t, root)
		configurations := g.move("Or install with kubectl")
		if finalizers := g.run(g.blocks["Clean up"]...); strings.Contains(finalizers, "["+node1) {
			t.Errorf("finalizers are left:\n%s", finalizers)
		}
		if left := g.kubectl("--namespace", original, "get", "deployments,daemonsets,serviceaccounts", "--output=name"); left !=
			"daemonset.apps/akri-debug-echo-discovery-daemonset\nserviceaccount/default" {
			t.Errorf("these are left:\n%s", left)
		}
		definitions, _, _ := strings.Cut(g.blocks["The way back"][3], "\n")
		g.run(g.blocks["The way back"][1], g.blocks["The way back"][2], definitions)
		g.installOriginal("--take-ownership", "--force-conflicts")
		g.assertBack(configurations)
	})
}

// newPage starts a cluster with brokers that use slots, and the original Akri.
func newPage(t *testing.T, root string) *guide {
	t.Helper()
	g := &guide{world: newWorldOn(t, clustertest.Start(t, cluster.Config{Nodes: 2}))}
	kubernetes, err := build.DefaultDir()
	if err != nil {
		t.Fatal(err)
	}
	path := []string{filepath.Join(root, "bin"), kubernetes, os.Getenv("PATH")}
	g.shell = akri.Shell{Dir: root, Path: strings.Join(path, string(filepath.ListSeparator)), Kubeconfig: g.Kubeconfig()}
	if g.blocks, err = akri.Blocks(root, "migrate-from-akri.md", "sh"); err != nil {
		t.Fatal(err)
	}
	g.names = g.blocks["The commands"][0] + "AKRI=" + original + " REGISTRY=akri.sh TAG=dev\n" +
		"CHART=charts/akri OPTIONS='--set image.tag=dev' KUSTOMIZATION=config/default SAVED=" + filepath.Join(t.TempDir(), "saved") + "\n"

	g.prepare()
	g.run("kubectl delete namespace "+akri.Namespace,
		"for dir in policy webhook rbac; do kubectl delete --ignore-not-found -k config/$dir; done",
		"kubectl replace --field-manager=helm -f cmd/kubectl-akri/testdata/migrate/definitions")
	g.kubectl("create", "secret", "generic", "token", "--from-literal=token=x")
	g.patch("configurations", "grp", mergePatch,
		`{spec: {discoveryHandler: {discoveryProperties: [{name: TOKEN, valueFrom: {secretKeyRef: {name: token, key: token}}}]}}}`)
	g.installOriginal("--create-namespace")
	return g
}

// installOriginal installs the original Akri with Helm, and waits for it.
func (g *guide) installOriginal(flags ...string) {
	g.Helper()
	g.run("helm install akri e2e/takeover/testdata/akri --wait -n " + original + " " + strings.Join(flags, " "))
}

// run runs blocks of commands in the checkout, and returns their output.
func (g *guide) run(blocks ...string) string {
	g.Helper()
	return g.shell.Run(g.T, g.names+strings.Join(blocks, "\n"))
}

// move moves the cluster by the commands of the page, and returns the UIDs of the
// Configurations. Nothing is created again or restarted, and no slot is lost.
func (g *guide) move(installer string) (configurations string) {
	g.Helper()
	configurations = g.uids()
	before, held := g.identities(), g.owners()
	var commands []string
	for _, heading := range []string{"Check", "Pull the images", "Save", "Permissions", "Stop Akri", installer, "Finish"} {
		if len(g.blocks[heading]) == 0 {
			g.Fatalf("the page has no commands below %q", heading)
		}
		commands = append(commands, g.blocks[heading]...)
	}
	g.run(commands...)
	g.assertTakenOver(before, held)
	return configurations
}

// uids returns the names and UIDs of the Configurations.
func (g *guide) uids() string {
	g.Helper()
	return g.kubectl("get", "configurations.akri.sh", "--all-namespaces",
		`--output=jsonpath={range .items[*]}{.metadata.name}{" "}{.metadata.uid}{"\n"}{end}`)
}

// assertBack fails the test unless the original Akri runs as Helm's release with its
// Configurations, and nothing of ours is left.
func (g *guide) assertBack(configurations string) {
	g.Helper()
	for _, workload := range []string{
		"daemonset/akri-agent-daemonset", "daemonset/akri-debug-echo-discovery-daemonset", "deployment/akri-controller-deployment",
	} {
		g.kubectl("--namespace", original, "rollout", "status", workload, "--timeout=60s")
	}
	g.run("helm status akri -n " + original)
	if now := g.uids(); now != configurations {
		g.Errorf("the Configurations were\n%s\nand are now\n%s", configurations, now)
	}
	if left := g.kubectl("get", "instances.akri.sh", "--all-namespaces", "--output=name"); left != "" {
		g.Errorf("these are left:\n%s", left)
	}
	const kinds = "deployments,daemonsets,clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingwebhookconfigurations"
	found := map[string]bool{}
	for one := range strings.FieldsSeq(g.kubectl("get", kinds, "--all-namespaces", "--output=name")) {
		if _, name, _ := strings.Cut(one, "/"); strings.HasPrefix(name, "akri-") {
			found[one] = true
		}
	}
	want := map[string]bool{
		"deployment.apps/akri-controller-deployment": true, "deployment.apps/akri-webhook-configuration": true,
		"daemonset.apps/akri-agent-daemonset": true, "daemonset.apps/akri-debug-echo-discovery-daemonset": true,
		"clusterrole.rbac.authorization.k8s.io/akri-agent-role": true, "clusterrolebinding.rbac.authorization.k8s.io/akri-agent-binding": true,
		"validatingwebhookconfiguration.admissionregistration.k8s.io/akri-webhook-configuration": true,
	}
	if !maps.Equal(found, want) {
		g.Errorf("there are\n%v\nwant\n%v", found, want)
	}
}
