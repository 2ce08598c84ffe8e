package manifest

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/internal/finding"
)

// Broken returns a finding for each file that could not be parsed.
func (all Files) Broken() []finding.Finding {
	var findings []finding.Finding
	for _, f := range all {
		if f.Err != nil {
			findings = append(findings, fromBroken(f))
		}
	}
	return findings
}

// NoConfiguration returns the finding that none of the files holds a Configuration.
func (all Files) NoConfiguration() finding.Finding {
	var names []string
	for _, f := range all {
		names = append(names, f.Name)
	}
	return finding.Finding{
		Mistake: finding.Mistake{
			Cause: "no Configuration in " + strings.Join(names, ", "),
			Hint:  "a Configuration starts with the lines apiVersion: akri.sh/v0 and kind: Configuration",
		},
	}
}

// Configurations reads the Configurations in files, directories and, for -,
// standard input. It prints what cannot be read to stderr and returns an error.
func Configurations(command *cobra.Command, streams cli.Streams, names []string) ([]map[string]any, error) {
	all, err := Read(command, streams, names)
	if err != nil {
		return nil, err
	}
	findings, found := all.Broken(), all.OfKind("Configuration")
	if len(findings) == 0 && len(found) == 0 {
		findings = append(findings, all.NoConfiguration())
	}
	if count := Show(streams.Err, findings, all); count > 0 {
		return nil, cli.Failed(errors.New(Count(count, "error") + " found"))
	}
	configurations := make([]map[string]any, len(found))
	for i, document := range found {
		configurations[i] = document.Object()
	}
	return configurations, nil
}
