package webhook

import (
	"fmt"
	"strings"

	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/internal/text"
)

// Level is the effect of a finding on the request, in ascending order: the highest of all
// findings is that of the response.
type Level int

const (
	// Warn admits the request with a warning.
	Warn Level = iota
	// Inconclusive admits the request with a warning: the controller will get the
	// result.
	Inconclusive
	// Deny rejects the request: the problem would not go away.
	Deny
	// Forbid rejects the request because the requester lacks a permission.
	Forbid
)

// Finding is one message to the author of a Configuration.
type Finding struct {
	Level Level
	finding.Mistake
}

// denies reports whether the finding rejects the request.
func (f Finding) denies() bool { return f.Level >= Deny }

// inconclusive returns the finding for a check that has no result.
func inconclusive(path, cause string) []Finding {
	return []Finding{{Inconclusive, finding.Mistake{Path: path, Cause: cause}}}
}

// denial returns a finding that rejects the request because of a problem.
func denial(found *problem.Error) Finding { return Finding{Deny, found.Mistake} }

// Limits of a response. The API server truncates longer warnings.
const (
	maxDenials       = 20
	maxWarnings      = 12
	maxDenialBytes   = 2000
	maxWarningBytes  = 1000
	inconclusiveNote = " (not known yet; the controller will report it in the conditions)"
)

// denials returns the message of a rejection.
func denials(findings []Finding) string {
	var lines []string
	for _, f := range findings {
		if f.denies() {
			lines = append(lines, oneLine(f.Error(), maxDenialBytes))
		}
	}
	if more := len(lines) - maxDenials; more > 0 {
		lines = append(lines[:maxDenials], fmt.Sprintf("and %d more errors", more))
	}
	return strings.Join(lines, "\n")
}

// warnings returns the findings that do not deny.
func warnings(findings []Finding) []string {
	var lines []string
	for _, f := range findings {
		switch f.Level {
		case Warn:
			lines = append(lines, oneLine(f.Error(), maxWarningBytes))
		case Inconclusive:
			lines = append(lines, oneLine(f.Error(), maxWarningBytes)+inconclusiveNote)
		}
	}
	if more := len(lines) - maxWarnings; more > 0 {
		lines = append(lines[:maxWarnings], fmt.Sprintf("and %d more warnings", more))
	}
	return lines
}

// oneLine returns the beginning of a message as a line. Control characters are escaped.
func oneLine(message string, maxBytes int) string {
	return text.Truncate(text.OneLine(strings.Join(strings.Fields(message), " ")), maxBytes)
}

// unique removes duplicates.
func unique(findings []Finding) []Finding {
	seen := map[Finding]bool{}
	kept := findings[:0]
	for _, f := range findings {
		if !seen[f] {
			seen[f] = true
			kept = append(kept, f)
		}
	}
	return kept
}
