package migration

import (
	"cmp"
	"slices"
)

// Severity is how much a finding matters.
type Severity string

// The severities, the worst first.
const (
	// Blocks is what has to be settled before the move.
	Blocks Severity = "blocks"
	// Changes is what works differently afterwards.
	Changes Severity = "changes"
	// Note is what is good to know.
	Note Severity = "note"
)

// Finding is something that the operator should know before the move.
type Finding struct {
	Severity Severity `json:"severity"`
	Place    string   `json:"place"`
	Cause    string   `json:"cause"`
	Hint     string   `json:"hint,omitempty"`
}

// sortFindings sorts by severity. Findings of the same severity keep their order.
func sortFindings(findings []Finding) {
	rank := map[Severity]int{Blocks: 0, Changes: 1, Note: 2}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(rank[a.Severity], rank[b.Severity]) })
}

// Count returns the number of findings of a severity.
func (r *Report) Count(severity Severity) int {
	count := 0
	for _, finding := range r.Findings {
		if finding.Severity == severity {
			count++
		}
	}
	return count
}
