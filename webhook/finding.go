package webhook

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Level is what a finding does to the request.
type Level int

const (
	// Warn admits, and tells.
	Warn Level = iota
	// Inconclusive admits, and tells that the controller will find out.
	Inconclusive
	// Deny refuses: it would go wrong later too.
	Deny
	// Forbid refuses, since the requester lacks a right.
	Forbid
)

// Finding is one thing to tell the author of a Configuration.
type Finding struct {
	Level Level
	// Place is the field, from spec or metadata on.
	Place string
	// Cause is what is wrong there.
	Cause string
	// Remedy is what to write or do instead; it may be empty.
	Remedy string
}

// denies tells whether the request is refused for it.
func (f Finding) denies() bool { return f.Level == Deny || f.Level == Forbid }

// String is the finding on one line: PLACE: CAUSE: REMEDY.
func (f Finding) String() string {
	var parts []string
	for _, part := range []string{f.Place, f.Cause, f.Remedy} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Bounds of what is told. The API server cuts warnings that are longer.
const (
	mostDenials    = 20
	mostWarnings   = 12
	longestDenial  = 2000
	longestWarning = 1000
)

// denials are the lines of a refusal; empty if there is none.
func denials(findings []Finding) string {
	var lines []string
	for _, finding := range findings {
		if finding.denies() {
			lines = append(lines, cut(finding.String(), longestDenial))
		}
	}
	if more := len(lines) - mostDenials; more > 0 {
		lines = append(lines[:mostDenials], fmt.Sprintf("and %d more of the kind", more))
	}
	return strings.Join(lines, "\n")
}

// warnings are what is told to somebody who is admitted.
func warnings(findings []Finding) []string {
	var lines []string
	for _, finding := range findings {
		switch finding.Level {
		case Warn:
			lines = append(lines, cut(finding.String(), longestWarning))
		case Inconclusive:
			lines = append(lines, cut(finding.String(), longestWarning)+" (not known yet; the controller will see and say so in the conditions)")
		}
	}
	if more := len(lines) - mostWarnings; more > 0 {
		lines = append(lines[:mostWarnings], fmt.Sprintf("and %d more warnings", more))
	}
	return lines
}

// cut bounds a text and keeps it on one line, without control characters.
func cut(text string, longest int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.Join(strings.Fields(text), " "))
	if len(text) <= longest {
		return text
	}
	for longest > 0 && !utf8.RuneStart(text[longest]) {
		longest--
	}
	return text[:longest] + "…"
}
