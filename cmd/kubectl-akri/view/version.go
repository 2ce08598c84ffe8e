package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	"akri.sh/akri/internal/text"
	"akri.sh/akri/internal/version"
)

// Components in the order in which they are shown. What is not one of them is the
// handler of that name.
const (
	Controller = "controller"
	Webhook    = "webhook"
	Agent      = "agent"
)

// Versions are the versions of everything that belongs to an installation.
type Versions struct {
	Client version.Info `json:"client"`
	// Kubernetes is the version of the API server, Namespace that of the Pods.
	Kubernetes string `json:"kubernetes,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Parts      []Part `json:"parts,omitempty"`
	// Notes are what could not be found out, what is missing, and whether this version of
	// Kubernetes has been tested, as controller and agents log it when they start.
	Notes []string `json:"notes,omitempty"`
	// Skew are the differences between versions, each with what to do about it.
	Skew []string `json:"skew,omitempty"`
}

// Part is a Pod of the installation.
type Part struct {
	// Component is a component, or the name of a handler.
	Component string `json:"component"`
	Pod       string `json:"pod"`
	// Node is empty if the Pod is not scheduled; Kubelet is empty if the node cannot be
	// read.
	Node    string `json:"node,omitempty"`
	Kubelet string `json:"kubelet,omitempty"`
	Image   string `json:"image,omitempty"`
	// Version is empty if it is unknown.
	Version string `json:"version,omitempty"`
	// Problem is the reason why the program does not run, or its version is unknown.
	Problem string `json:"problem,omitempty"`
}

// ImageOf returns the image of the program in one of Akri's Pods.
func ImageOf(pod *corev1.Pod) string {
	if len(pod.Spec.Containers) == 0 {
		return ""
	}
	return pod.Spec.Containers[0].Image
}

// VersionOf returns the version of the program in one of Akri's Pods, or "": the tag of its
// image, or the label with which the chart names it.
func VersionOf(pod *corev1.Pod) string {
	image, _, _ := strings.Cut(ImageOf(pod), "@")
	tag := image[strings.LastIndexByte(image, ':')+1:]
	if !strings.Contains(tag, "/") && version.Valid(tag) {
		return tag
	}
	if label := "v" + strings.TrimPrefix(pod.Labels["app.kubernetes.io/version"], "v"); version.Valid(label) {
		return label
	}
	return ""
}

// Healthy reports whether all versions are known and equal, and nothing is missing.
func (v *Versions) Healthy() bool {
	unread := v.Kubernetes != "" && len(v.Parts) == 0 || slices.ContainsFunc(v.Parts, func(part Part) bool { return part.Problem != "" })
	return len(v.Skew) == 0 && len(v.Notes) == 0 && !unread
}

// Judge sorts the parts, and fills in Skew.
func (v *Versions) Judge() {
	slices.SortStableFunc(v.Parts, func(a, b Part) int {
		return cmp.Or(cmp.Compare(rank(a.Component), rank(b.Component)), cmp.Compare(a.Component, b.Component),
			cmp.Compare(a.Node, b.Node), cmp.Compare(a.Pod, b.Pod))
	})
	v.Skew = skew(v)
}

// order has the components that are not handlers.
var order = []string{Controller, Webhook, Agent}

func rank(component string) int {
	if i := slices.Index(order, component); i >= 0 {
		return i
	}
	return len(order)
}

// skew names what has another version than the controller, or than the first part whose
// version is known.
func skew(v *Versions) (lines []string) {
	known := slices.IndexFunc(v.Parts, func(part Part) bool { return part.Version != "" })
	if known < 0 {
		return nil
	}
	first := v.Parts[known]
	type group struct{ component, version string }
	sizes := map[group]int{}
	var groups []group // in the order of the parts
	for _, part := range v.Parts {
		if part.Version == "" || part.Version == first.Version {
			continue
		}
		key := group{part.Component, part.Version}
		if sizes[key]++; sizes[key] == 1 {
			groups = append(groups, key)
		}
	}
	reference := fmt.Sprintf("that of Pod %s is %s", first.Pod, first.Version)
	for _, key := range groups {
		lines = append(lines, fmt.Sprintf("the version of %s (%s) is %s, but %s: update the image, or wait until the rollout "+
			"has completed: kubectl get pods -n %s", counted(sizes[key], "Pod"), key.component, key.version, reference, v.Namespace))
	}
	if v.Client.Version != first.Version {
		lines = append(lines, fmt.Sprintf("the version of this kubectl-akri is %s, but %s: install the version of the cluster",
			v.Client.Version, reference))
	}
	return lines
}

// Text prints the versions.
func (v *Versions) Text(out io.Writer) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "kubectl-akri\t%s\t%s\n", v.Client.Version, v.Client.Platform)
	if v.Kubernetes != "" {
		fmt.Fprintf(table, "Kubernetes\t%s\n", text.OneLine(v.Kubernetes))
	}
	table.Flush()
	notes := slices.Clone(v.Notes)
	if len(v.Parts) > 0 {
		fmt.Fprintln(&b)
		fmt.Fprintln(table, "COMPONENT\tVERSION\tPOD\tNODE\tKUBELET")
	}
	for _, part := range v.Parts {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", text.OneLine(part.Component), cmp.Or(text.OneLine(part.Version), "unknown"),
			part.Pod, cmp.Or(part.Node, "none"), cmp.Or(text.OneLine(part.Kubelet), "-"))
		if part.Problem != "" {
			notes = append(notes, part.Pod+": "+part.Problem)
		}
	}
	table.Flush()
	for _, line := range notes {
		fmt.Fprintf(&b, "\nnote: %s", text.OneLine(line))
	}
	for _, line := range v.Skew {
		fmt.Fprintf(&b, "\nskew: %s", text.OneLine(line))
	}
	if len(notes)+len(v.Skew) > 0 {
		fmt.Fprintln(&b)
	}
	return printed(out, b.String())
}
