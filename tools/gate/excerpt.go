package main

import (
	"bytes"
	"regexp"
	"strings"
)

const (
	// maxBefore is how many lines before an error of make explain it.
	maxBefore = 6
	// maxLine is the length of a line in the report.
	maxLine = 200
)

// makeError matches the line that make prints when a recipe has failed. Make prints
// it once more, without a place, for each target that needed the failed one.
var makeError = regexp.MustCompile(`^make(\[\d+\])?: \*\*\* \[.+\] `)

// excerpt is an io.Writer that keeps what the output of a stage says about failures.
type excerpt struct {
	rest   []byte
	recent []string   // the last lines, at most maxBefore
	found  [][]string // the lines before each error of make
}

func (e *excerpt) Write(p []byte) (int, error) {
	e.rest = append(e.rest, p...)
	for {
		line, rest, complete := bytes.Cut(e.rest, []byte("\n"))
		if !complete {
			return len(p), nil
		}
		e.line(string(line))
		e.rest = rest
	}
}

func (e *excerpt) line(text string) {
	switch {
	case strings.TrimSpace(text) == "":
	case makeError.MatchString(text):
		if len(e.recent) > 0 {
			e.found = append(e.found, e.recent)
		}
		e.recent = nil
	default:
		e.recent = append(e.recent, shorten(text))
		e.recent = e.recent[max(0, len(e.recent)-maxBefore):]
	}
}

// errors returns the lines before each error of make, or the last lines if make
// reported none.
func (e *excerpt) errors() [][]string {
	if len(e.rest) > 0 {
		e.line(string(e.rest))
		e.rest = nil
	}
	if len(e.found) > 0 || len(e.recent) == 0 {
		return e.found
	}
	return [][]string{e.recent}
}

// shorten cuts a line for the report.
func shorten(line string) string {
	line = strings.TrimRight(line, " \t\r")
	if len(line) > maxLine {
		line = strings.ToValidUTF8(line[:maxLine], "") + "…"
	}
	return line
}
