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

// ConcludeDiscovery leaves out what other nodes than the given one find, if there is one, and
// finds the problems because of which there are no devices, or not all.
func (f *Facts) ConcludeDiscovery(node string) {
	f.Instances = slices.DeleteFunc(f.Instances, func(i v0.Instance) bool { return node != "" && !slices.Contains(i.Spec.Nodes, node) })
	f.Configuration.Status.DiscoveryFailures = slices.DeleteFunc(f.Configuration.Status.DiscoveryFailures,
		func(failure v0.DiscoveryFailure) bool { return node != "" && failure.Node != node })
	f.Findings = append([]finding.Mistake{}, slices.Concat(f.System.Problems(Agent), f.discoveryFails(), f.noDevices())...)
	if complaint := f.System.nodeProblem(node); complaint != "" {
		f.Findings = findingf(nodeRemedy(node), "Node %s %s.", node, complaint)
	} else if cause, remedy := f.System.agentProblem(node); cause != "" {
		f.Findings = findingf(remedy, "Node %s has no working agent: %s", node, cause)
	}
}

// Discovered prints the devices with their properties, and why others can be missing.
func (f *Facts) Discovered(out io.Writer) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(&b, "%s found\n", counted(len(f.Instances), "device"))
	for i := range f.Instances {
		one := &f.Instances[i]
		name := cmp.Or(v0.DisplayName(one), one.Annotations[v0.AnnotationDeviceID], one.Name)
		fmt.Fprintf(&b, "\n%s  on %s\n", text.OneLine(name), cmp.Or(strings.Join(one.Spec.Nodes, ", "), "no node"))
		for _, key := range slices.Sorted(maps.Keys(one.Spec.BrokerProperties)) {
			if key != v0.PropertyDisplayName {
				fmt.Fprintf(table, "  %s\t%s\n", key, text.OneLine(one.Spec.BrokerProperties[key]))
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
