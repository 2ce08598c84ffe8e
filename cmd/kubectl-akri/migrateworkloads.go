package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
)

// workload is a Deployment or a DaemonSet.
type workload struct {
	kind string
	metav1.ObjectMeta
	pod     corev1.PodSpec
	running int32
}

// Roles of the original Akri's workloads, in the order of a report.
const (
	ofController = "1 controller"
	ofAgent      = "2 agent"
	ofWebhook    = "3 webhook"
	ofHandler    = "4 handler"
)

// devicePluginsDir is the directory in the containers of agents.
const devicePluginsDir = "/var/lib/kubelet/device-plugins"

// builtInHandlers maps the names of handler DaemonSets to the names that the handlers
// register. Those of the original Akri, which has the first four, have the suffix -daemonset.
var builtInHandlers = map[string]string{
	"akri-udev-discovery": "udev", "akri-onvif-discovery": "onvif", "akri-opcua-discovery": "opcua",
	"akri-debug-echo-discovery": "debugEcho",
	"akri-http-discovery":       "http", "akri-mdns-discovery": "mdns", "akri-mqtt-discovery": "mqtt",
}

// role returns what a workload of the original Akri is for, or "". Names in its chart are
// not changed by values, but a manifest may give the agent another.
func (w *workload) role() string {
	switch {
	case w.Name == "akri-controller-deployment":
		return ofController
	case w.Name == "akri-agent-daemonset" || w.has("DISCOVERY_HANDLERS_DIRECTORY") && w.hostPath(devicePluginsDir) != "":
		return ofAgent
	case w.Name == "akri-webhook-configuration" || w.runs("webhook-configuration"):
		return ofWebhook
	case w.ofThisAkri():
		return ""
	case strings.HasSuffix(w.Name, "-discovery-daemonset") || w.has("DISCOVERY_HANDLERS_DIRECTORY"):
		return ofHandler
	}
	return ""
}

// ofThisAkri reports whether config or the chart of this Akri made the workload. That of the
// original Akri sets the same labels, but no name that ends like those of our handlers.
func (w *workload) ofThisAkri() bool {
	isHandler := strings.HasSuffix(w.Name, "-discovery") && w.Labels["app.kubernetes.io/part-of"] == "akri"
	return isHandler || w.Name == agentName || w.Name == "akri-controller" || w.Name == "akri-webhook"
}

// place names the workload in a finding.
func (w *workload) place() string { return w.kind + " " + w.Namespace + "/" + w.Name }

// handler returns the name that a handler registers, or "" if it is unknown.
func (w *workload) handler() string { return builtInHandlers[strings.TrimSuffix(w.Name, "-daemonset")] }

// has reports whether a container has an environment variable.
func (w *workload) has(variable string) bool {
	return slices.ContainsFunc(w.pod.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == variable && e.Value != "" })
	})
}

// runs reports whether a container runs an image of that name.
func (w *workload) runs(image string) bool {
	return slices.ContainsFunc(w.pod.Containers, func(c corev1.Container) bool {
		name, _, _ := strings.Cut(strings.ReplaceAll(path.Base(c.Image), "@", ":"), ":")
		return name == image
	})
}

// hostPath returns the directory of the node that is mounted in a container at a path, or "".
func (w *workload) hostPath(inside string) string {
	for _, container := range w.pod.Containers {
		for _, mount := range container.VolumeMounts {
			for _, volume := range w.pod.Volumes {
				if path.Clean(mount.MountPath) == inside && volume.Name == mount.Name && volume.HostPath != nil {
					return path.Clean(volume.HostPath.Path)
				}
			}
		}
	}
	return ""
}

// embedded returns the handlers that run in Akri's agent itself.
func (w *workload) embedded() []string {
	var names []string
	if w.has("ENABLE_DEBUG_ECHO") {
		names = append(names, "debugEcho")
	}
	if w.runs("agent-full") {
		names = append(names, "onvif", "opcua", "udev")
	}
	return names
}

// deployer returns the tool that keeps the workload as it is in Git, or "".
func (w *workload) deployer() string {
	for key := range w.Labels {
		if strings.Contains(key, ".toolkit.fluxcd.io/") {
			return "Flux"
		}
	}
	if w.Annotations["argocd.argoproj.io/tracking-id"] != "" || w.Labels["argocd.argoproj.io/instance"] != "" {
		return "Argo CD"
	}
	return ""
}

// workloads checks how Akri was installed, what runs, and the handlers.
func (m *migration) workloads(ctx context.Context) error {
	var akris, all []workload
	keep := func(w workload) {
		if all = append(all, w); w.role() != "" {
			akris = append(akris, w)
		}
	}
	err := errors.Join(
		each(ctx, m, appsv1.SchemeGroupVersion.WithResource("deployments"), "", func(d *appsv1.Deployment) {
			keep(workload{"Deployment", d.ObjectMeta, d.Spec.Template.Spec, d.Status.ReadyReplicas})
		}),
		each(ctx, m, appsv1.SchemeGroupVersion.WithResource("daemonsets"), "", func(d *appsv1.DaemonSet) {
			keep(workload{"DaemonSet", d.ObjectMeta, d.Spec.Template.Spec, d.Status.NumberReady})
		}))
	slices.SortStableFunc(akris, func(a, b workload) int { return cmp.Compare(a.role(), b.role()) })
	for i := range akris {
		m.workload(&akris[i])
	}
	is := &m.report.Installation
	slices.Sort(is.Handlers)
	is.Handlers = slices.Compact(is.Handlers)
	m.controllers(all)
	m.handlers(all)
	return err
}

// controllers checks that not both controllers run.
func (m *migration) controllers(all []workload) {
	old := slices.IndexFunc(all, func(w workload) bool { return w.role() == ofController && w.running > 0 })
	if old < 0 {
		return
	}
	for i := range all {
		if w := &all[i]; w.kind == "Deployment" && w.Name == "akri-controller" && w.running > 0 {
			m.report.add(finding.Error, w.place(), "stop Akri's: kubectl scale -n "+all[old].Namespace+" deployment/"+all[old].Name+" --replicas=0",
				"two controllers run, and each replaces the objects of the other")
		}
	}
}

// workload adds a workload of Akri to the installation.
func (m *migration) workload(w *workload) {
	is := &m.report.Installation
	is.Workloads = append(is.Workloads, strings.ToLower(w.kind)+" "+w.Namespace+"/"+w.Name)
	if tool := w.deployer(); tool != "" {
		m.report.add(finding.Error, w.place(), "suspend "+tool+" for Akri first, without pruning, and remove it there afterwards",
			"%s deploys it and would start it again next to the new one", tool)
	}
	switch w.role() {
	case ofHandler:
		is.Handlers = append(is.Handlers, cmp.Or(w.handler(), w.Name))
		return
	case ofAgent:
		is.Handlers = append(is.Handlers, w.embedded()...)
		m.directories(w)
	}
	is.Chart = cmp.Or(is.Chart, w.Labels["helm.sh/chart"])
	is.Namespace = cmp.Or(is.Namespace, w.Namespace)
	if release := w.Annotations["meta.helm.sh/release-name"]; release != "" {
		is.Release = release
		m.report.add(finding.Warning, "Helm release "+w.Namespace+"/"+release,
			"never uninstall it: make Helm forget it, as in docs/migrate-from-akri.md",
			"helm uninstall runs a hook of Akri's chart that deletes all Configurations of all namespaces")
	}
}

// directories checks where the kubelet and the handlers have their sockets.
func (m *migration) directories(w *workload) {
	for _, directory := range []struct{ value, inside, below string }{
		{"kubelet.rootDir", "/var/lib/kubelet/pod-resources", "/pod-resources"},
		{"kubelet.devicePluginsDir", devicePluginsDir, ""},
		{"agent.handlersDir", "/var/lib/akri", ""},
	} {
		if dir := w.hostPath(directory.inside); dir != "" && dir != directory.inside {
			set := directory.value + "=" + strings.TrimSuffix(dir, directory.below)
			m.report.add(finding.Warning, w.place(), "install the chart with --set "+set,
				"the nodes do not use the default directory for %s", directory.value)
		}
	}
}

// handlers checks the handlers that run, and those that Configurations name.
func (m *migration) handlers(all []workload) {
	users := map[string]string{}
	for _, c := range m.configurations {
		if name, _, _ := unstructured.NestedString(c.Object, "spec", "discoveryHandler", "name"); name != "" {
			users[name] = strings.TrimPrefix(users[name]+", "+c.GetNamespace()+"/"+c.GetName(), ", ")
		}
	}
	provided := map[string]bool{}
	for i := range all {
		w := &all[i]
		name := w.handler()
		provided[name] = true // also by a handler of this Akri
		switch role := w.role(); {
		case role == ofAgent:
			for _, name := range w.embedded() {
				provided[name] = true
				if users[name] != "" {
					m.report.add(finding.Warning, w.place(), "install the chart with --set handlers."+name+".enabled=true",
						"the handler %s is part of Akri's agent and stops with it", name)
				}
			}
		case role != ofHandler:
		case name == "":
			m.report.add(finding.Warning, w.place(),
				"permit them with agent.args of the chart: --allow-device-files=NAME=/dev, with the name that it registers",
				"a handler of your own keeps working, but device files and mounts of its devices reach containers only if the agents permit them")
		case users[name] == "":
			m.report.add(finding.Warning, w.place(), "restart it after the move",
				"no Configuration uses the handler %s, so it does not notice that the agents are new", name)
		default:
			m.report.add(finding.Note, w.place(), "",
				"the handler %s keeps working unchanged; the new Akri has its own, which can replace it later", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(users)) {
		if !provided[name] {
			m.report.add(finding.Note, "handler "+name, "check that it runs, and restart it after the move if a Configuration says HandlerMissing",
				"%s: no handler of this name was found: it may be your own, connect over the network, or run outside of Kubernetes", users[name])
		}
	}
}

// webhooks checks who else judges Configurations.
func (m *migration) webhooks(ctx context.Context) error {
	resource := admissionregistrationv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations")
	return each(ctx, m, resource, "", func(object *admissionregistrationv1.ValidatingWebhookConfiguration) {
		for _, webhook := range object.Webhooks {
			for _, rule := range webhook.Rules {
				judges := slices.Contains(rule.APIGroups, v0.Domain) && slices.Contains(rule.Resources, "configurations")
				place := "ValidatingWebhookConfiguration " + object.Name
				switch {
				case !judges || object.Name == "akri-configurations": // of this Akri
				case object.Name == "akri-webhook-configuration" || object.Labels["app.kubernetes.io/part-of"] == "akri":
					m.report.add(finding.Warning, place, "delete it before the new Akri is installed, as in docs/migrate-from-akri.md",
						"Akri's webhook rejects Configurations with fields that it does not know, such as instanceBrokerResources")
				default:
					m.report.add(finding.Note, place, "check that it admits fields that Akri does not have, such as instanceBrokerResources",
						"a webhook that is not Akri's validates Configurations, and stays")
				}
			}
		}
	})
}

// nodes checks which nodes are ready.
func (m *migration) nodes(ctx context.Context) error {
	return each(ctx, m, corev1.SchemeGroupVersion.WithResource("nodes"), "", func(node *corev1.Node) {
		if m.ready == nil {
			m.ready = map[string]bool{}
		}
		m.ready[node.Name] = slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if !m.ready[node.Name] {
			m.report.add(finding.Warning, "Node "+node.Name, "",
				"it is not Ready: the move leaves it out, and its agent is replaced when it is back")
		}
	})
}
