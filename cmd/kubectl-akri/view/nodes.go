package view

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"akri.sh/akri/agent/debug"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/text"
)

// NodeReport is what is known about the agent of a node.
type NodeReport struct {
	Node      string `json:"node"`
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// Problem is the reason why State is nil.
	Problem string       `json:"problem,omitempty"`
	State   *debug.State `json:"state,omitempty"`
}

// slotStates are the states of slots in the order in which they are shown.
var slotStates = []string{"free", "held", "taken", "conflicting", "unwritable"}

// Nodes prints a line per node, followed by what needs attention.
func Nodes(out io.Writer, reports []NodeReport, now time.Time) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tAGENT\tVERSION\tHANDLERS\tCONFIGURATIONS\tDEVICES\tSLOTS\tERRORS")
	var notes []string
	for _, report := range reports {
		state := report.State
		if state == nil {
			fmt.Fprintf(table, "%s\tunknown\t-\t-\t-\t-\t-\t-\n", report.Node)
			notes = append(notes, fmt.Sprintf("%s: %s", report.Node, text.OneLine(report.Problem)))
			continue
		}
		devices := 0
		for _, configuration := range state.Configurations {
			devices += configuration.Devices
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", report.Node, readyText(state), text.OneLine(state.Version),
			handlersText(state), len(state.Configurations), devices, slotsText(state.Slots), errorsText(state))
		notes = append(notes, shortened(report.Node, attention(state))...)
	}
	table.Flush()
	if len(notes) > 0 {
		fmt.Fprintf(&b, "\n%s\n", strings.Join(notes, "\n"))
	}
	return printed(out, b.String())
}

// shortened returns the first of a node's notes, each with the name of the node.
func shortened(node string, notes []string) []string {
	const maxNotes = 10
	var lines []string
	for i, note := range notes {
		if i == maxNotes {
			return append(lines, fmt.Sprintf("%s: and %d more: kubectl akri nodes %[1]s", node, len(notes)-maxNotes))
		}
		lines = append(lines, node+": "+note)
	}
	return lines
}

// attention returns what needs attention on a node.
func attention(state *debug.State) (notes []string) {
	note := func(format string, args ...any) {
		notes = append(notes, text.OneLine(fmt.Sprintf(format, args...)))
	}
	if state.NotReady != "" {
		note("the agent is not ready: %s", state.NotReady)
	}
	if state.Slots.Unavailable != "" {
		note("its slots are unknown: %s", state.Slots.Unavailable)
	}
	for _, configuration := range state.Configurations {
		for _, failure := range configuration.Failures {
			note("discovery of %s/%s fails: %s", configuration.Namespace, configuration.Name, failure)
		}
	}
	unwritable := ""
	for _, slot := range state.Slots.List {
		switch slot.State {
		case "conflicting":
			note("slot %s is in use here, but its Instance names %q", slot.Name, slot.Owner)
		case "unwritable":
			unwritable = cmp.Or(unwritable, slot.Name)
		}
	}
	if unwritable != "" {
		note("owners of %s cannot be written into the Instances, such as %s; the latest errors say why",
			counted(state.Slots.Counts["unwritable"], "slot"), unwritable)
	}
	for _, violation := range state.Slots.Violations {
		note("invariant %s is violated: %s: %s; please report this", violation.Invariant, violation.Where, violation.What)
	}
	return notes
}

func readyText(state *debug.State) string {
	if state.NotReady != "" {
		return "not ready"
	}
	return "ready"
}

// handlersText returns the handlers with their states, and how many endpoints have it.
func handlersText(state *debug.State) string {
	counts := map[string]int{}
	var texts []string
	for _, handler := range state.Handlers {
		shown := text.OneLine(handler.Name) + " " + offlineText(handler, state.Time)
		if counts[shown]++; counts[shown] == 1 {
			texts = append(texts, shown)
		}
	}
	for i, shown := range texts {
		if n := counts[shown]; n > 1 {
			texts[i] = fmt.Sprintf("%s (%d)", shown, n)
		}
	}
	return cmp.Or(strings.Join(texts, ", "), "none")
}

// offlineText returns the state of a handler.
func offlineText(handler debug.Handler, now time.Time) string {
	if handler.OfflineSince == nil {
		return text.OneLine(handler.State)
	}
	return fmt.Sprintf("%s for %s", text.OneLine(handler.State), duration.HumanDuration(now.Sub(*handler.OfflineSince)))
}

func slotsText(slots debug.Slots) string {
	if slots.Unavailable != "" {
		return "unknown"
	}
	var texts []string
	for _, state := range slotStates {
		if n := slots.Counts[state]; n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return cmp.Or(strings.Join(texts, ", "), "none")
}

// errorsText returns how many different errors there are, and when the latest was.
func errorsText(state *debug.State) string {
	if len(state.Errors) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, latest %s ago", len(state.Errors), duration.HumanDuration(state.Time.Sub(state.Errors[0].Last)))
}

// Node prints all that is known about one node.
func Node(out io.Writer, report NodeReport, now time.Time) error {
	var b strings.Builder
	state := report.State
	if state == nil {
		fmt.Fprintf(&b, "Node %s  agent unknown: %s\n", report.Node, text.OneLine(report.Problem))
		return printed(out, b.String())
	}
	fmt.Fprintf(&b, "Node %s  agent %s\n", report.Node, readyText(state))
	fmt.Fprintf(&b, "  pod      %s/%s, started %s ago\n", report.Namespace, report.Pod, duration.HumanDuration(now.Sub(state.Started)))
	fmt.Fprintf(&b, "  version  %s\n", text.OneLine(state.Version))
	if kubernetes := kubernetesText(state.Kubernetes); kubernetes != "" {
		fmt.Fprintf(&b, "  cluster  %s\n", kubernetes)
	}
	fmt.Fprintf(&b, "  slots    %s\n", slotsText(state.Slots))
	section(&b, "Needs attention", attention(state))
	var handlers, configurations, resources, slots, errors []string
	for _, handler := range state.Handlers {
		shared := ""
		if handler.Shared {
			shared = ", shared devices"
		}
		handlers = append(handlers, fmt.Sprintf("%s  %s, %s%s  %s", handler.Name, offlineText(handler, state.Time),
			counted(handler.Streams, "stream"), shared, handler.Endpoint))
	}
	for _, c := range state.Configurations {
		offline := ""
		if c.Online < c.Devices {
			offline = fmt.Sprintf(" (%d offline)", c.Devices-c.Online)
		}
		configurations = append(configurations, fmt.Sprintf("%s/%s  handler %s  %s%s, %s", c.Namespace, c.Name, c.Handler,
			counted(c.Devices, "device"), offline, counted(c.Instances, "Instance")))
	}
	for _, resource := range state.Slots.Resources {
		used := 0
		for _, id := range resource.IDs {
			if len(id.Slots) > 0 {
				used++
			}
		}
		resources = append(resources, fmt.Sprintf("%s  %d in use, %d more can be allocated", resource.Name, used, resource.Offered))
	}
	for _, slot := range state.Slots.List {
		slots = append(slots, slotText(slot))
	}
	if state.Slots.Omitted > 0 {
		slots = append(slots, fmt.Sprintf("and %d more", state.Slots.Omitted))
	}
	for _, record := range state.Errors {
		times, details := "", ""
		if record.Details != "" {
			details = "  " + record.Details
		}
		if record.Count > 1 {
			times = fmt.Sprintf(" (%d times in %s)", record.Count, duration.HumanDuration(record.Last.Sub(record.First)))
		}
		errors = append(errors, fmt.Sprintf("%s ago  %s%s%s", duration.HumanDuration(state.Time.Sub(record.Last)), record.Message,
			times, details))
	}
	section(&b, "Handlers", handlers)
	section(&b, "Configurations", configurations)
	section(&b, "Resources of Configurations", resources)
	section(&b, "Slots that are not free", slots)
	section(&b, "Latest errors", errors)
	return printed(out, b.String())
}

// section prints lines under a title, if there are any.
func section(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, line := range lines {
		fmt.Fprintf(b, "  %s\n", text.OneLine(line))
	}
}

// slotText describes a slot that is not free.
func slotText(slot debug.Slot) string {
	line := slot.Name + "  " + slot.State
	owner, err := v0.ParseOwner(slot.Owner)
	switch {
	case err != nil:
		line += " by " + slot.Owner
	case slot.State == "taken":
		line += " by " + owner.Node
	case slot.State == "conflicting":
		line += " with " + owner.Node
	case slot.State == "held" && slot.InUse:
		line += " by a container"
	}
	if owner.VirtualID != "" {
		line += fmt.Sprintf(", through the Configuration's resource (id %s)", owner.VirtualID)
	}
	if slot.Pending != "" {
		line += ", " + slot.Pending
	}
	return line
}

// counted returns a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func printed(out io.Writer, s string) error {
	if _, err := io.WriteString(out, s); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// kubernetesText returns a line about the versions that an agent has found; "" if it has
// found none.
func kubernetesText(kubernetes debug.Kubernetes) string {
	if kubernetes.APIServer == "" {
		return ""
	}
	words := []string{"Kubernetes " + kubernetes.APIServer}
	if kubernetes.Pods == debug.PodsOfAPIServer {
		words = append(words, "the kubelet has no Pods API: Pods are read from the API server")
	}
	return text.OneLine(strings.Join(append(words, kubernetes.Lacking...), "; "))
}
