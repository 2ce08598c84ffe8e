package migration

import (
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// Installer is the tool that installs the new Akri.
type Installer string

// The installers.
const (
	Helm    Installer = "helm"
	Kubectl Installer = "kubectl"
)

// PlanOptions are what the operator chooses.
type PlanOptions struct {
	Installer Installer
	Namespace string // of the new Akri
	Source    string // of the chart, or of the directory with config/default
	// Kustomization says that Source is a kustomization that installs everything.
	Kustomization bool
	Set           []string // KEY=VALUE: values of the chart
	Replace       bool     // Akri's handlers by the new ones
}

// Step is a part of the move.
type Step struct {
	Title    string
	Why      []string // lines
	Commands []string
}

// Plan returns the steps of the move of a cluster, in their order.
func Plan(f *Facts, o PlanOptions) []Step {
	p := &planner{facts: f, options: o, installed: installed(f, o.Namespace)}
	p.check()
	p.save()
	p.forget()
	p.stopController()
	p.webhook()
	p.stopAgents()
	p.install()
	p.permissions()
	p.wait()
	p.handlers()
	p.verify()
	p.clean()
	return p.steps
}

// PrintPlan writes the steps as a script for a POSIX shell.
func PrintPlan(out io.Writer, f *Facts, o PlanOptions) error {
	var text strings.Builder
	text.WriteString("#!/bin/sh\n# Moves this cluster from the original Akri to this one. Nothing that uses a device is\n" +
		"# restarted. If a step fails, correct the cause, and let kubectl akri migrate plan print what is left.\n" +
		"set -eu\numask 077\n\n" + guard(f, o))
	for i, step := range Plan(f, o) {
		fmt.Fprintf(&text, "\n# %d. %s\n", i+1, step.Title)
		for _, line := range step.Why {
			fmt.Fprintf(&text, "#    %s\n", line)
		}
		for _, command := range step.Commands {
			text.WriteString(command + "\n")
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// guard returns the commands that stop the script in another cluster than the one that was
// read: between the plan and its run, somebody may have selected another context.
func guard(f *Facts, o PlanOptions) string {
	text := "# The names below are those of one cluster, whose namespace kube-system has this UID.\n"
	if o.Installer == Helm {
		text += "unset HELM_KUBECONTEXT HELM_KUBEAPISERVER # helm uses the cluster that kubectl uses\n"
	}
	return text + "test \"$(kubectl get namespace kube-system -o jsonpath='{.metadata.uid}')\" = " + quote(f.Cluster) + " || {\n" +
		"  echo \"cluster: it is not the one that this script was made for: select that one's context, or print the plan again\" >&2\n" +
		"  exit 1\n}\n"
}

// planner collects steps.
type planner struct {
	facts     *Facts
	options   PlanOptions
	installed bool // the new Akri, by an earlier run of the script
	steps     []Step
}

// hasNewDefinitions reports whether a definition is that of the new Akri.
func hasNewDefinitions(f *Facts) bool {
	return slices.ContainsFunc(f.Definitions, func(d Definition) bool { return d.Status })
}

// installed reports whether the new Akri is installed in a namespace and ready.
func installed(f *Facts, namespace string) bool {
	missing := func(role Role) bool {
		elsewhere := func(w Workload) bool { return w.Namespace != namespace }
		return ready(f, role) != nil || slices.ContainsFunc(f.workloads(role), elsewhere)
	}
	return hasNewDefinitions(f) && !slices.ContainsFunc([]Role{RoleNewController, RoleNewWebhook, RoleNewAgent}, missing)
}

// add adds a step, unless it has nothing to do.
func (p *planner) add(title string, why []string, commands ...string) {
	if len(commands) > 0 {
		p.steps = append(p.steps, Step{title, why, commands})
	}
}

// check pulls the images while nothing has changed: without them, nodes would have no
// agents.
func (p *planner) check() {
	const check = "kubectl akri migrate check"
	if p.installed {
		p.add("Check the cluster", []string{"The script stops here if something blocks. The new Akri is installed already."}, check)
		return
	}
	commands := []string{check}
	pull := "| kubectl akri migrate pull -n " + p.options.Namespace
	if p.options.Installer == Helm {
		template := fmt.Sprintf("helm template akri %s -n %s", quote(p.options.Source), p.options.Namespace)
		commands = append(commands, strings.Join(slices.Concat([]string{template}, p.sets(), []string{pull}), continued))
	} else {
		for _, directory := range p.kustomizations() {
			commands = append(commands, "kubectl kustomize "+quote(directory)+" "+pull)
		}
	}
	p.add("Check the cluster, and pull the new images on all nodes", []string{
		"The script stops here if something blocks, or if an image cannot be pulled. Nothing has changed then.",
	}, commands...)
}

// continued joins the lines of a long command.
const continued = " \\\n  "

func (p *planner) save() {
	var commands []string
	save := func(file, command string) {
		commands = append(commands, fmt.Sprintf("test -s %s || %s > %s", file, command, file))
	}
	save("akri-objects.yaml", "kubectl get configurations.akri.sh,instances.akri.sh -A -o yaml")
	if hasNewDefinitions(p.facts) {
		commands = append(commands, "test -s akri-definitions.yaml || echo 'akri-definitions.yaml: missing: the definitions are the new ones "+
			"already: the way back needs the file that the first run has saved in its directory' >&2")
	} else {
		save("akri-definitions.yaml", "kubectl get customresourcedefinition configurations.akri.sh instances.akri.sh -o yaml")
	}
	if r := p.facts.Release; r != nil {
		if p.options.Installer == Helm {
			save("akri-values.yaml", fmt.Sprintf("helm get values %s -n %s -o yaml", r.Name, r.Namespace))
		}
		save("akri-release.yaml", fmt.Sprintf("kubectl get secret -n %s -l owner=helm,name=%s -o yaml", r.Namespace, r.Name))
	}
	commands = append(commands, saveAll("akri-workloads", p.old(RoleController, RoleAgent, RoleWebhook))...)
	replaced := slices.DeleteFunc(p.old(RoleHandler), func(w Workload) bool { return !p.replaces(w) })
	commands = append(commands, saveAll("akri-handlers", replaced)...)
	for _, w := range p.facts.originalWebhooks() {
		save("akri-registration.yaml", fmt.Sprintf("kubectl get validatingwebhookconfiguration %s -o yaml", w.Name))
	}
	p.add("Save what there is", []string{
		"Files of an earlier run are kept: they have what was there before. They may contain what is secret in Helm's values.",
	}, commands...)
}

// saveAll returns the commands that save workloads in a file, never a part of them.
func saveAll(name string, workloads []Workload) []string {
	if len(workloads) == 0 {
		return nil
	}
	var each []string
	for _, w := range workloads {
		each = append(each, fmt.Sprintf("kubectl get -n %s %s -o yaml", w.Namespace, kubectlName(w)))
	}
	return []string{
		fmt.Sprintf("test -s %s.yaml || {\n  %s\n} > %[1]s.part", name, strings.Join(each, "\n  echo ---\n  ")),
		fmt.Sprintf("test -s %s.yaml || mv %[1]s.part %[1]s.yaml", name),
	}
}

func (p *planner) old(roles ...Role) []Workload {
	var found []Workload
	for _, role := range roles {
		found = append(found, p.facts.workloads(role)...)
	}
	return found
}

func (p *planner) forget() {
	r := p.facts.Release
	if r == nil {
		return
	}
	why := []string{
		"Never run helm uninstall: it deletes what the release contains, Configurations included.",
	}
	if len(r.Deletes) > 0 {
		why = []string{
			"Never run helm uninstall: the chart's hook " + r.Deletes[0] + " deletes all Configurations of all namespaces, and",
			"with them all Instances and brokers. Without these Secrets, Helm does not know the release; its objects stay.",
		}
	}
	p.add("Make Helm forget the release "+r.Name, why,
		fmt.Sprintf("kubectl delete secret -n %s -l owner=helm,name=%s", r.Namespace, r.Name))
}

func (p *planner) stopController() {
	var commands []string
	for _, w := range p.old(RoleController, RoleWebhook) {
		if w.Desired > 0 {
			commands = append(commands, fmt.Sprintf("kubectl scale -n %s %s --replicas=0", w.Namespace, kubectlName(w)))
		}
	}
	for _, w := range p.old(RoleController) {
		if w.Desired > 0 || w.Running > 0 {
			commands = append(commands, p.waitGone(w))
		}
	}
	p.add("Stop Akri's controller", []string{
		"Two controllers replace each other's objects. Brokers go on. To undo it: --replicas=1.",
	}, commands...)
}

// waitGone returns the command that waits for the end of a workload's Pods.
func (p *planner) waitGone(w Workload) string {
	return fmt.Sprintf("kubectl wait -n %s pod -l %s%s --for=delete --timeout=3m", w.Namespace, selector(w.Selector), p.elsewhere())
}

// elsewhere leaves out the Pods of nodes that are not Ready: they end, and begin, when
// the node is back.
func (p *planner) elsewhere() string {
	if len(p.facts.Down) == 0 {
		return ""
	}
	return " --field-selector=spec.nodeName!=" + strings.Join(p.facts.Down, ",spec.nodeName!=")
}

func (p *planner) webhook() {
	var commands []string
	for _, w := range p.facts.originalWebhooks() {
		commands = append(commands, "kubectl delete validatingwebhookconfiguration "+w.Name)
	}
	p.add("Take Akri's admission webhook out", []string{
		"It rejects fields that it does not know, and all writes while it does not run.",
	}, commands...)
}

// stopped is a label that no node has: it keeps the agents from running, and its removal
// brings them back.
const stopped = "akri.sh/stopped"

func (p *planner) stopAgents() {
	var commands []string
	for _, w := range p.old(RoleAgent) {
		isStopped := w.Pod.NodeSelector[stopped] != ""
		if !isStopped {
			patch := `{"spec":{"template":{"spec":{"nodeSelector":{"` + stopped + `":"true"}}}}}`
			commands = append(commands, fmt.Sprintf("kubectl patch -n %s %s --type=merge -p '%s'", w.Namespace, kubectlName(w), patch))
		}
		if !isStopped || w.Running > 0 {
			commands = append(commands, p.waitGone(w))
		}
	}
	p.add("Stop Akri's agents on all nodes", []string{
		"From here until the new agents are ready, no new container gets a device. Running ones do not notice.",
		`To undo it: kubectl patch … -p '{"spec":{"template":{"spec":{"nodeSelector":{"` + stopped + `":null}}}}}'`,
	}, commands...)
}

func (p *planner) install() {
	o := p.options
	if p.installed {
		return
	}
	if o.Installer == Kubectl {
		why := []string{"--force-conflicts, because fields of the definitions belong to Helm. Objects keep their contents."}
		if names := p.newHandlers(); o.Kustomization && len(names) > 0 {
			why = append(why, "The kustomization must contain these handlers: "+strings.Join(names, ", ")+".")
		}
		p.add("Install the new definitions, controller, webhook and agents", why, p.kubectl()...)
		return
	}
	p.add("Install the new definitions, controller, webhook and agents", []string{
		"--take-ownership, --force-conflicts (Helm 4) and crds.guard=false, because the definitions are there already.",
		"Configurations stay plain objects. Do not pass the old values now: what they render would be created in",
		p.options.Namespace + ", next to what exists. docs/migrate-from-akri.md says how the chart can own it later.",
	}, p.helm()...)
}

// kustomizations returns the directories that kubectl applies.
func (p *planner) kustomizations() []string {
	if p.options.Kustomization {
		return []string{p.options.Source}
	}
	directories := []string{path.Join(p.options.Source, "config/default")}
	for _, name := range p.newHandlers() {
		directories = append(directories, path.Join(p.options.Source, "config", handlerDirectory(name)))
	}
	return directories
}

// handlerDirectory returns the directory of a handler in config.
func handlerDirectory(name string) string {
	if name == "debugEcho" {
		return "debug-echo"
	}
	return name
}

func (p *planner) kubectl() []string {
	var commands []string
	for _, directory := range p.kustomizations() {
		commands = append(commands, "kubectl apply --server-side --force-conflicts -k "+quote(directory))
	}
	return commands
}

// settings returns the values of the chart that this cluster needs.
func (p *planner) settings() []string {
	settings := []string{"crds.guard=false"}
	for _, w := range p.old(RoleAgent) {
		for _, directory := range w.directories() {
			settings = append(settings, directory.key+"="+directory.value)
		}
	}
	for _, name := range p.newHandlers() {
		settings = append(settings, "handlers."+builtIn[name]+".enabled=true")
	}
	return settings
}

// sets returns the settings and those of the operator as arguments of helm.
func (p *planner) sets() []string {
	var words []string
	for _, s := range slices.Concat(p.settings(), p.options.Set) {
		words = append(words, "--set "+quote(s))
	}
	return words
}

func (p *planner) helm() []string {
	var commands []string
	for _, secret := range p.facts.Pending {
		if secret.Namespace == p.options.Namespace {
			commands = append(commands, fmt.Sprintf("kubectl delete secret -n %s %s # Helm was interrupted, and refuses to go on with it",
				secret.Namespace, secret.Name))
		}
	}
	// Helm 3 has no such flag: it overwrites the fields of others in any case.
	const force = "force=$(helm upgrade --help | grep -o -m 1 -e --force-conflicts || true)"
	upgrade := fmt.Sprintf("helm upgrade --install akri %s -n %s --create-namespace --take-ownership $force",
		quote(p.options.Source), p.options.Namespace)
	return append(commands, force, strings.Join(append([]string{upgrade}, p.sets()...), continued))
}

// newHandlers returns the handlers to install: those that ended with Akri's agent, those
// that replace others, and those that an earlier run has installed.
func (p *planner) newHandlers() []string {
	names := map[string]bool{}
	for _, w := range p.old(RoleAgent) {
		for _, name := range w.embedded() {
			names[name] = p.used(name)
		}
	}
	for _, w := range p.old(RoleHandler) {
		if name := w.handler(); name != "" && p.options.Replace {
			names[name] = true
		}
	}
	for _, w := range p.old(RoleNewHandler) {
		if name := newHandlers[w.Name]; name != "" && w.Namespace == p.options.Namespace {
			names[name] = true
		}
	}
	maps.DeleteFunc(names, func(_ string, needed bool) bool { return !needed })
	return slices.Sorted(maps.Keys(names))
}

// used reports whether a Configuration names a handler.
func (p *planner) used(handler string) bool {
	for i := range p.facts.Configurations {
		if parsed := parse(&p.facts.Configurations[i]); parsed.handler == handler {
			return true
		}
	}
	return false
}

// permissions grants the agents what discoveryProperties refer to.
func (p *planner) permissions() {
	var commands []string
	for i := range p.facts.Configurations {
		if parsed := parse(&p.facts.Configurations[i]); len(parsed.sources) > 0 {
			commands = append(commands, fmt.Sprintf("kubectl akri rbac -n %s %s --agent=%s/%s | kubectl apply -f -",
				parsed.Namespace, parsed.Name, p.options.Namespace, newAgent))
		}
	}
	p.add("Let the agents read the credentials for discovery", []string{
		"Only these objects, in their namespaces.",
	}, commands...)
}

func (p *planner) wait() {
	n := p.options.Namespace
	agents := fmt.Sprintf("kubectl rollout status -n %s daemonset/%s --timeout=5m", n, newAgent)
	if len(p.facts.Down) > 0 { // the DaemonSet would wait for all nodes
		agents = fmt.Sprintf("kubectl wait -n %s pod -l app.kubernetes.io/name=%s%s --for=condition=Ready --timeout=5m",
			n, newAgent, p.elsewhere())
	}
	p.add("Wait for them", nil,
		fmt.Sprintf("kubectl rollout status -n %s deployment/%s --timeout=5m", n, newController),
		fmt.Sprintf("kubectl rollout status -n %s deployment/%s --timeout=5m", n, newWebhook),
		agents)
}

// handlers restarts the handlers that would not register again, or removes those that
// are replaced.
func (p *planner) handlers() {
	var restart, remove []string
	for _, w := range p.old(RoleHandler) {
		switch name := w.handler(); {
		case p.replaces(w):
			remove = append(remove, fmt.Sprintf("kubectl delete -n %s %s", w.Namespace, kubectlName(w)))
		case name == "" || !p.used(name):
			restart = append(restart, fmt.Sprintf("kubectl rollout restart -n %s %s", w.Namespace, kubectlName(w)))
		}
	}
	p.add("Restart handlers that may not register again by themselves", []string{
		"Akri's handlers notice new agents only while a Configuration uses them. Restarting one that is in use does no harm:",
		"devices are kept for 30 seconds, and those that several nodes reach for 300.",
	}, restart...)
	p.add("Remove Akri's handlers, which the new ones replace", []string{
		"The devices keep their names, because both find the same IDs.",
	}, remove...)
}

// replaces reports whether a new handler takes the place of one of Akri's.
func (p *planner) replaces(w Workload) bool { return p.options.Replace && w.handler() != "" }

func (p *planner) verify() {
	p.add("Verify", []string{
		"All Configurations that were in use are Ready, and each Instance has its Pods and slots.",
	}, "kubectl get configurations.akri.sh,instances.akri.sh -A", "kubectl akri nodes -n "+p.options.Namespace, "kubectl akri tree -A")
}

func (p *planner) clean() {
	p.add("Remove what Akri has left", []string{
		"It lists what it will remove, and asks. From here, the way back is a new installation of Akri.",
	}, "kubectl akri migrate clean")
}

// kubectlName returns KIND/NAME.
func kubectlName(w Workload) string { return strings.ToLower(w.Kind) + "/" + w.Name }

// selector writes labels as kubectl takes them.
func selector(labels map[string]string) string {
	var terms []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		terms = append(terms, key+"="+labels[key])
	}
	return strings.Join(terms, ",")
}

// quote quotes a word for a POSIX shell if necessary.
func quote(word string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
