package view

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/internal/text"
)

// PropertyDisplayName is the property in which a handler says what a device is.
const PropertyDisplayName = "AKRI_DISPLAY_NAME"

// DisplayName returns a short text that says what a device is, or "".
func DisplayName(instance *v0.Instance) string {
	return instance.Spec.BrokerProperties[PropertyDisplayName]
}

// Found is what a Configuration has discovered.
type Found struct {
	Devices []FoundDevice `json:"devices"`
	// Findings are why devices can be missing.
	Findings []finding.Mistake `json:"findings"`
}

// FoundDevice is a device and the nodes that see it.
type FoundDevice struct {
	Name       string            `json:"name"`
	Nodes      []string          `json:"nodes"`
	Shared     bool              `json:"shared"`
	Properties map[string]string `json:"properties"`
}

// Found returns what the Configuration has discovered, on one node or, without a name, on all.
func (f *Facts) Found(node string) *Found {
	found := &Found{Devices: []FoundDevice{}}
	elsewhere := func(name string) bool { return node != "" && name != node }
	f.Instances = slices.DeleteFunc(slices.Clone(f.Instances), func(i v0.Instance) bool {
		return node != "" && !slices.Contains(i.Spec.Nodes, node)
	})
	f.Configuration = f.Configuration.DeepCopy()
	f.Configuration.Status.DiscoveryFailures = slices.DeleteFunc(f.Configuration.Status.DiscoveryFailures,
		func(failure v0.DiscoveryFailure) bool { return elsewhere(failure.Node) })
	for i := range f.Instances {
		one := &f.Instances[i]
		name := cmp.Or(DisplayName(one), one.Annotations[v0.AnnotationDeviceID], one.Name)
		found.Devices = append(found.Devices, FoundDevice{name, one.Spec.Nodes, one.Spec.Shared, one.Spec.BrokerProperties})
	}
	slices.SortFunc(found.Devices, func(a, b FoundDevice) int { return cmp.Compare(a.Name, b.Name) })
	if complaint := f.System.nodeProblem(node); complaint != "" {
		found.Findings = findingf(nodeRemedy(node), "Node %s %s.", node, complaint)
	} else if cause, remedy := f.System.agentProblem(node); cause != "" {
		found.Findings = findingf(remedy, "Node %s has no agent that works: %s", node, cause)
	}
	found.Findings = slices.Concat([]finding.Mistake{}, found.Findings, f.System.Problems(Agent), f.discoveryFails(), f.noDevices())
	return found
}

// Text prints the devices with their properties, and the findings.
func (f *Found) Text(out io.Writer) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(&b, "%s found\n", counted(len(f.Devices), "device"))
	for _, device := range f.Devices {
		fmt.Fprintf(&b, "\n%s  on %s\n", text.OneLine(device.Name), cmp.Or(strings.Join(device.Nodes, ", "), "no node"))
		for _, key := range slices.Sorted(maps.Keys(device.Properties)) {
			if key != PropertyDisplayName {
				fmt.Fprintf(table, "  %s\t%s\n", key, text.OneLine(device.Properties[key]))
			}
		}
		table.Flush()
	}
	if len(f.Findings) > 0 {
		b.WriteString("\nProblems:\n")
		writeFindings(&b, f.Findings)
	}
	return printed(out, b.String())
}
