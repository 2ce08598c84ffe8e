package webhook

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/text"
)

// Level is the effect of a finding on the request.
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
	// Busy rejects the request because the webhook has no capacity left for it: another
	// attempt may succeed.
	Busy
)

// Finding is one message to the author of a Configuration.
type Finding struct {
	Level Level
	// Place is the path of the field, starting with spec or metadata.
	Place string
	// Cause is the error at that place.
	Cause string
	// Hint is the remedy. It may be empty.
	Hint string
}

// denies reports whether the finding rejects the request.
func (f Finding) denies() bool { return f.Level == Deny || f.Level == Forbid || f.Level == Busy }

// tooBusy returns the finding for a review for which there is no capacity.
func tooBusy(err error) Finding {
	return Finding{Level: Busy, Place: "spec", Cause: err.Error(), Hint: "try again in a few seconds"}
}

// String returns the finding on one line: PLACE: CAUSE: HINT.
func (f Finding) String() string { return problem.Message(f.Place, f.Cause, f.Hint) }

// Limits of a response. The API server truncates longer warnings.
const (
	maxDenials       = 20
	maxWarnings      = 12
	maxDenialBytes   = 2000
	maxWarningBytes  = 1000
	inconclusiveNote = " (not known yet; the controller will report it in the conditions)"
)

// denials returns the message of a rejection, or "" if no finding denies.
func denials(findings []Finding) string {
	var lines []string
	for _, finding := range findings {
		if finding.denies() {
			lines = append(lines, oneLine(finding.String(), maxDenialBytes))
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
	for _, finding := range findings {
		switch finding.Level {
		case Warn:
			lines = append(lines, oneLine(finding.String(), maxWarningBytes))
		case Inconclusive:
			lines = append(lines, oneLine(finding.String(), maxWarningBytes)+inconclusiveNote)
		}
	}
	if more := len(lines) - maxWarnings; more > 0 {
		lines = append(lines[:maxWarnings], fmt.Sprintf("and %d more warnings", more))
	}
	return lines
}

// oneLine joins the lines of a message, replaces its control characters and
// truncates it.
func oneLine(message string, maxBytes int) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.Join(strings.Fields(message), " "))
	return text.Truncate(printable, maxBytes)
}

// unique removes duplicates.
func unique(findings []Finding) []Finding {
	seen := map[Finding]bool{}
	kept := findings[:0]
	for _, finding := range findings {
		if !seen[finding] {
			seen[finding] = true
			kept = append(kept, finding)
		}
	}
	return kept
}
