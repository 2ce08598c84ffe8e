package takeover

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"akri.sh/akri/e2e/peers"
	"akri.sh/akri/kubebox/build"
)

// join writes what Akri's agent on a node writes about a device that it sees.
func (w *world) join(instance object, node string) error {
	configuration := w.get("configurations", instance.Spec.ConfigurationName)
	err := w.applyAs(node, "instances", instance.Metadata.Name, map[string]any{
		"metadata": map[string]any{"ownerReferences": []any{map[string]any{
			"apiVersion": "akri.sh/v0", "kind": "Configuration",
			"name": configuration.Metadata.Name, "uid": configuration.Metadata.UID, "controller": true,
		}}},
		"spec": specOf(instance, node),
	})
	if err == nil {
		err = w.finalize(node, "instances", instance.Metadata.Name)
	}
	return err
}

// leave writes what Akri's agent on a node writes about a device that it no longer sees.
func (w *world) leave(instance object, node string) error {
	return w.applyAs(node, "instances", instance.Metadata.Name, map[string]any{"spec": specOf(instance)})
}

func specOf(instance object, nodes ...string) map[string]any {
	return map[string]any{
		"configurationName": instance.Spec.ConfigurationName, "cdiName": instance.Spec.CDIName, "capacity": instance.Spec.Capacity,
		"brokerProperties": instance.Spec.BrokerProperties, "shared": true, "deviceUsage": map[string]any{},
		"nodes": append([]string{}, nodes...),
	}
}

// own writes the slots that a node has, as Akri's agent does when it claims or frees one.
func (w *world) own(instance, node string, owners map[string]string) error {
	return w.applyAs("dp-"+node, "instances", instance, map[string]any{"spec": map[string]any{"deviceUsage": owners}})
}

// keepSlots writes the slots that the containers of a node have, as Akri's agent does.
func (w *world) keepSlots(instance object, node string) {
	w.Helper()
	owners := maps.Clone(instance.Spec.DeviceUsage)
	maps.DeleteFunc(owners, func(_, owner string) bool { return owner != node && !strings.HasSuffix(owner, ":"+node) })
	if len(owners) > 0 {
		w.accepted("own its slots", w.own(instance.Metadata.Name, node, owners))
	}
}

// freeSlot returns the only free slot of grp, and its Instance.
func (w *world) freeSlot() (instance, slot string) {
	w.Helper()
	instance = w.instance("grp").Metadata.Name
	held := w.owners()
	var free []string
	for _, each := range []string{instance + "-0", instance + "-1"} {
		if held[each] == "" {
			free = append(free, each)
		}
	}
	if len(free) != 1 {
		w.Fatalf("the free slots of %s are %v, want one", instance, free)
	}
	return instance, free[0]
}

// finalize adds the finalizer of a node, as Akri's agent does.
func (w *world) finalize(node, kind, name string) error {
	return w.applyAs(node+"-fin", kind, name, map[string]any{"metadata": map[string]any{"finalizers": []string{node}}})
}

// applyAs sends a server-side apply of a field manager that is not forced.
func (w *world) applyAs(manager, kind, name string, content map[string]any) error {
	content["apiVersion"], content["kind"] = "akri.sh/v0", map[string]string{"instances": "Instance", "configurations": "Configuration"}[kind]
	metadata, _ := content["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		content["metadata"] = metadata
	}
	metadata["name"] = name
	body, err := json.Marshal(content)
	if err != nil {
		return err
	}
	_, err = w.sendAs(w.akri, http.MethodPatch, paths[kind]+"/"+name+"?fieldManager="+manager, applyPatch, string(body))
	return err
}

// account is the ServiceAccount of Akri's agents, with what Akri's chart lets it do.
const account = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: akri-agent-sa, namespace: ` + namespace + `}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: akri-agent-role}
rules:
- {apiGroups: [akri.sh], resources: [instances], verbs: [get, list, watch, create, update, patch, delete]}
- {apiGroups: [akri.sh], resources: [configurations], verbs: [get, list, watch, update, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: akri-agent-binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: akri-agent-role}
subjects: [{kind: ServiceAccount, name: akri-agent-sa, namespace: ` + namespace + `}]
`

// becomeAkri lets Akri's agents write with their own account from now on. The policies
// refuse them until an administrator has granted what the documentation says.
func (w *world) becomeAkri() {
	w.Helper()
	w.apply(account)
	w.akri = "system:serviceaccount:" + namespace + ":akri-agent-sa"
	instance, slot := w.freeSlot()
	err := w.own(instance, node2, map[string]string{slot: ofGroup})
	if err == nil || !strings.Contains(err.Error(), "may not publish Instances") {
		w.Errorf("without a grant, Akri's agent may claim a slot: %v", err)
	}
	w.documented(0)
	w.eventually("the grant is in force", func() string {
		if err := w.own(instance, node2, map[string]string{slot: ofGroup}); err != nil {
			return err.Error()
		}
		return ""
	})
	w.accepted("free the slot", w.own(instance, node2, map[string]string{}))
}

// documented runs the commands in a block of docs/compatibility-akri.md.
func (w *world) documented(block int) {
	w.Helper()
	root, err := build.Root()
	if err != nil {
		w.Fatal(err)
	}
	bin, err := build.DefaultDir()
	if err != nil {
		w.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "compatibility-akri.md"))
	if err != nil {
		w.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^ *```bash\n(.*?)^ *```$").FindAllStringSubmatch(string(page), -1)
	if block >= len(blocks) {
		w.Fatalf("the page has %d blocks of commands", len(blocks))
	}
	jq := peers.Debian(w.T, "jq", "libjq1", "libonig5")
	script := strings.ReplaceAll(blocks[block][1], "NAMESPACE", namespace)
	command := exec.CommandContext(w.Context(), "bash", "-eu", "-o", "pipefail", "-c", script)
	command.Env = append(append(os.Environ(), peers.Libraries(jq)...), "KUBECONFIG="+w.Kubeconfig(),
		"PATH="+strings.Join([]string{bin, filepath.Join(jq, "usr", "bin"), os.Getenv("PATH")}, string(filepath.ListSeparator)))
	output, err := command.CombinedOutput()
	if err != nil {
		w.Fatalf("%s\n%v\n%s", script, err, output)
	}
	w.Logf("%s", output)
}

// accepted fails the test if Akri gets an error.
func (w *world) accepted(what string, err error) {
	w.Helper()
	if err != nil {
		w.Errorf("Akri cannot %s: %v", what, err)
	}
}

// original turns what our programs have made into what Akri makes, while none of ours
// runs.
func (w *world) original() {
	w.Helper()
	for _, configuration := range w.list("configurations") {
		for _, node := range []string{node1, node2, "node3"} { // node3 no longer exists
			w.accepted("add its finalizer", w.finalize(node, "configurations", configuration.Metadata.Name))
		}
		w.withoutStatus("configurations", configuration.Metadata.Name)
	}
	for _, instance := range w.list("instances") {
		w.withoutStatus("instances", instance.Metadata.Name)
		w.patch("instances", instance.Metadata.Name, mergePatch, `{metadata: {labels: null, annotations: null, managedFields: [{}]}}`)
		for _, node := range instance.Spec.Nodes {
			w.accepted("join", w.join(instance, node))
			w.keepSlots(instance, node)
		}
		w.onlyManagers("instances", instance.Metadata.Name, func(manager string) bool {
			return slices.Contains([]string{node1, node2, node1 + "-fin", node2 + "-fin", "dp-" + node1, "dp-" + node2}, manager)
		})
	}
	for _, kind := range []string{"pods", "services"} {
		for _, o := range w.list(kind) {
			owner := o.Metadata.OwnerReferences
			if len(owner) == 0 {
				continue // a user's
			}
			owner[0]["blockOwnerDeletion"] = true
			references, err := json.Marshal(owner)
			if err != nil {
				w.Fatal(err)
			}
			w.patch(kind, o.Metadata.Name, mergePatch, fmt.Sprintf(
				`{metadata: {labels: {app.kubernetes.io/managed-by: null}, ownerReferences: %s, managedFields: [{}]}}`, references))
		}
	}
}

// withoutStatus removes the status, which Akri does not have.
func (w *world) withoutStatus(kind, name string) {
	w.Helper()
	w.eventually("the policy for the status is gone", func() string {
		_, err := w.send(http.MethodPatch, paths[kind]+"/"+name+"/status", mergePatch, `{status: null}`)
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// onlyManagers removes the other field managers of an object.
func (w *world) onlyManagers(kind, name string, keep func(manager string) bool) {
	w.Helper()
	var patch []string
	for i, entry := range slices.Backward(w.get(kind, name).Metadata.ManagedFields) {
		if !keep(entry.Manager) {
			patch = append(patch, fmt.Sprintf("{op: remove, path: /metadata/managedFields/%d}", i))
		}
	}
	if len(patch) > 0 {
		w.patch(kind, name, jsonPatch, "["+strings.Join(patch, ", ")+"]")
	}
}
