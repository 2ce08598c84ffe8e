package details

import (
	"slices"

	"github.com/tidwall/match"
)

// Filter is a list of values that devices must have, or must not have, in Akri's form:
//
//	{action: Include, items: [a, b]}
type Filter struct {
	Items  []string `json:"items"`
	Action Action   `json:"action"`
}

// Action says what a Filter does with the values in its list.
type Action string

// The actions. Akri's default is Include.
const (
	Include Action = "Include"
	Exclude Action = "Exclude"
)

// Check returns the mistake in a Filter, which may be nil.
func (f *Filter) Check(path string) error {
	switch {
	case f == nil:
		return nil
	case f.Action != "" && f.Action != Include && f.Action != Exclude:
		return Faultf(join(path, "action"), "want Include or Exclude, not %q", string(f.Action))
	case f.Items == nil:
		return Faultf(join(path, "items"), "missing").Hintf("write a list of values, such as [a, b]")
	case len(f.Items) == 0 && f.Action != Exclude:
		return Faultf(join(path, "items"), "empty, so that no device passes").Hintf("add items, or write action: Exclude to admit all devices")
	}
	return nil
}

// Admits reports whether a device with these values passes. matches compares an item of
// the list with a value. A nil Filter admits all devices. With Include, one value must
// match an item; with Exclude, none may.
func (f *Filter) Admits(matches func(item, value string) bool, values ...string) bool {
	if f == nil {
		return true
	}
	found := slices.ContainsFunc(values, func(value string) bool {
		return slices.ContainsFunc(f.Items, func(item string) bool { return matches(item, value) })
	})
	return found == (f.Action != Exclude)
}

// Glob reports whether a pattern matches all of a text. In the pattern, * stands for any
// characters, ? for any single one, and a backslash takes the meaning of the next.
func Glob(pattern, value string) bool {
	matched, _ := match.MatchLimit(value, pattern, maxGlobSteps)
	return matched
}

// maxGlobSteps bounds the attempts for each byte of a text, which a pattern of many stars causes.
const maxGlobSteps = 1000
