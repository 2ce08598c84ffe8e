package migration

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Role is what a workload is for.
type Role string

// The roles of workloads. Those of this Akri are "new".
const (
	RoleController    Role = "controller"
	RoleAgent         Role = "agent"
	RoleWebhook       Role = "webhook"
	RoleHandler       Role = "handler"
	RoleNewController Role = "new controller"
	RoleNewAgent      Role = "new agent"
	RoleNewWebhook    Role = "new webhook"
	RoleNewHandler    Role = "new handler"
	RoleNone          Role = ""
)

// Names in Akri's chart, which no value changes, and in config/.
const (
	oldController = "akri-controller-deployment"
	oldAgent      = "akri-agent-daemonset"
	oldWebhook    = "akri-webhook-configuration" // the default of a value
	handlerSuffix = "-discovery-daemonset"

	newController = "akri-controller"
	newAgent      = "akri-agent"
	newWebhook    = "akri-webhook"
	newRules      = "akri-configurations" // the registration of the new webhook

	cleanupAccount = "akri-helm-cleanup-hook-sa"
)

// builtIn maps the names that handlers register to the values of the chart that enable
// the handler of this Akri.
var builtIn = map[string]string{"udev": "udev", "onvif": "onvif", "opcua": "opcua", "debugEcho": "debugEcho"}

// handlersOf maps the names of Akri's handler DaemonSets to the names that they register.
var handlersOf = map[string]string{
	"akri-udev-discovery-daemonset":       "udev",
	"akri-onvif-discovery-daemonset":      "onvif",
	"akri-opcua-discovery-daemonset":      "opcua",
	"akri-debug-echo-discovery-daemonset": "debugEcho",
}

// Directories in the containers of agents.
const (
	handlersDir      = "/var/lib/akri"
	devicePluginsDir = "/var/lib/kubelet/device-plugins"
	podResourcesDir  = "/var/lib/kubelet/pod-resources"
)

// Role returns what the workload is for.
func (w Workload) Role() Role {
	switch {
	case w.Kind == "Deployment" && w.Name == oldController:
		return RoleController
	case w.Kind == "DaemonSet" && (w.Name == oldAgent || w.mountsHandlers() && w.mounts(devicePluginsDir)):
		return RoleAgent // under whatever name a manifest gives it
	case w.Kind == "Deployment" && (w.Name == oldWebhook || w.image("webhook-configuration")):
		return RoleWebhook
	case w.Kind == "Deployment" && w.Name == newController:
		return RoleNewController
	case w.Kind == "DaemonSet" && w.Name == newAgent:
		return RoleNewAgent
	case w.Kind == "Deployment" && w.Name == newWebhook:
		return RoleNewWebhook
	case strings.HasPrefix(w.Name, "akri-") && strings.HasSuffix(w.Name, "-discovery") && w.Labels["app.kubernetes.io/part-of"] == "akri":
		return RoleNewHandler
	case strings.HasSuffix(w.Name, handlerSuffix) || w.mountsHandlers():
		return RoleHandler
	}
	return RoleNone
}

// image reports whether a container runs an image of that base name.
func (w Workload) image(name string) bool {
	for _, container := range w.Pod.Containers {
		repository, _, _ := strings.Cut(container.Image, "@")
		base := repository[strings.LastIndex(repository, "/")+1:]
		if base, _, _ = strings.Cut(base, ":"); base == name {
			return true
		}
	}
	return false
}

// mounts reports whether a container has a volume at a path.
func (w Workload) mounts(inside string) bool {
	for _, container := range w.Pod.Containers {
		for _, mount := range container.VolumeMounts {
			if path.Clean(mount.MountPath) == inside {
				return true
			}
		}
	}
	return false
}

// mountsHandlers reports whether a Pod sees the directory of the registration socket.
// Agents and all handlers that do not use the network mount it.
func (w Workload) mountsHandlers() bool {
	for _, container := range w.Pod.Containers {
		for _, env := range container.Env {
			if env.Name == "DISCOVERY_HANDLERS_DIRECTORY" && env.Value != "" {
				return true
			}
		}
	}
	return false
}

// handler returns the name that a handler registers, or "" if it is unknown.
func (w Workload) handler() string { return handlersOf[w.Name] }

// hostPath returns the directory of the node that is mounted in the containers at a
// path, or the path if none is. The paths in the containers never change.
func (w Workload) hostPath(inside string) string {
	for _, container := range w.Pod.Containers {
		for _, mount := range container.VolumeMounts {
			for _, volume := range w.Pod.Volumes {
				if path.Clean(mount.MountPath) == inside && volume.Name == mount.Name && volume.HostPath != nil {
					return path.Clean(volume.HostPath.Path)
				}
			}
		}
	}
	return inside
}

// setting is a value of the new chart that the directories of a node need.
type setting struct{ key, value string }

// directories returns those that differ from the defaults.
func (w Workload) directories() []setting {
	var settings []setting
	for _, directory := range []struct{ key, inside string }{
		{"kubelet.rootDir", podResourcesDir}, {"kubelet.devicePluginsDir", devicePluginsDir}, {"agent.handlersDir", handlersDir},
	} {
		if dir := w.hostPath(directory.inside); dir != directory.inside {
			if directory.inside == podResourcesDir {
				dir = path.Dir(dir)
			}
			settings = append(settings, setting{directory.key, dir})
		}
	}
	return settings
}

// embedded returns the handlers that run in Akri's agent itself.
func (w Workload) embedded() []string {
	var names []string
	if w.image("agent-full") {
		names = []string{"onvif", "opcua", "udev"}
	}
	for _, container := range w.Pod.Containers {
		for _, env := range container.Env {
			if env.Name == "ENABLE_DEBUG_ECHO" {
				names = append(names, "debugEcho")
			}
		}
	}
	slices.Sort(names)
	return names
}

var versionPattern = regexp.MustCompile(`\bv?(\d+)\.(\d+)\.(\d+)(-[0-9A-Za-z.-]+)?`)

// version returns Akri's version by the tag of the image or the labels of the chart.
func (w Workload) version() string {
	for _, container := range w.Pod.Containers {
		repository, _, _ := strings.Cut(container.Image, "@")
		if _, tag, found := strings.Cut(repository[strings.LastIndex(repository, "/")+1:], ":"); found {
			if match := versionPattern.FindString(tag); match != "" {
				return strings.TrimPrefix(match, "v")
			}
		}
	}
	for _, label := range []string{"app.kubernetes.io/version", "helm.sh/chart"} {
		if match := versionPattern.FindString(w.Labels[label]); match != "" {
			return strings.TrimPrefix(match, "v")
		}
	}
	return ""
}

// tooOld reports whether a version wrote Instances without cdiName and capacity.
func tooOld(version string) bool {
	match := versionPattern.FindStringSubmatch(version)
	return match != nil && match[1] == "0" && (len(match[2]) == 1 || match[2] < "13")
}

// deployer returns the tool that keeps the workload as it is in Git, or "".
func (w Workload) deployer() string {
	for key := range w.Labels {
		if strings.HasPrefix(key, "helm.toolkit.fluxcd.io/") || strings.HasPrefix(key, "kustomize.toolkit.fluxcd.io/") {
			return "Flux"
		}
	}
	if w.Annotations["argocd.argoproj.io/tracking-id"] != "" || w.Labels["argocd.argoproj.io/instance"] != "" {
		return "Argo CD"
	}
	return ""
}

// object returns the name of the workload as kubectl writes it.
func (w Workload) object() Object {
	return Object{strings.ToLower(w.Kind) + "s.apps", w.Namespace, w.Name}
}
