// Package finding has the two types of what is wrong in something that people write, such
// as a Configuration: a mistake, which is an error with its place, cause and remedy, and a
// finding, which is a mistake and how much it matters.
//
// Always: an error "place: cause; remedy". Never: a client, a file, a clock.
package finding

import "fmt"

// Mistake is an error that its reader can correct.
type Mistake struct {
	// Path leads to the field, as in spec.capacity or instanceBrokerResources[2].kind;
	// empty for the object as a whole.
	Path  string `json:"path,omitempty"`
	Cause string `json:"message"` // lower case
	Hint  string `json:"remedy,omitempty"`
}

// Error returns the path, the cause and the remedy, as far as they are known.
func (m Mistake) Error() string {
	message := m.Cause
	if m.Path != "" {
		message = m.Path + ": " + message
	}
	if m.Hint != "" {
		message += "; " + m.Hint
	}
	return message
}

// Level is how much a finding matters.
type Level int

// The levels.
const (
	Error   Level = iota // it is refused, or has no effect
	Warning              // it may be refused, or works differently
	Note                 // it is good to know
)

// String returns error, warning or note.
func (l Level) String() string { return [...]string{"error", "warning", "note"}[l] }

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Position is a place in a file. Line and Column count from 1.
type Position struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// String returns FILE:LINE:COLUMN, which editors and terminals recognize.
func (p Position) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// Finding is a mistake, how much it matters, and where in a file it is. The names in JSON
// are those of kubectl akri -o json.
type Finding struct {
	Level Level `json:"level"`
	// Position is zero if the finding is about no file, or about all of them.
	Position
	// For is what was rendered, as in Instance cam-1; empty if nothing was.
	For string `json:"for,omitempty"`
	// Text quotes what the author wrote, for readers who do not see the file; it may be
	// empty.
	Text string `json:"-"`
	Mistake
}

// Error returns the position and the mistake.
func (f Finding) Error() string {
	message := f.Quoting().Error()
	if f.File == "" {
		return message
	}
	return f.Position.String() + ": " + message
}

// Quoting returns the mistake with the text before its cause.
func (f Finding) Quoting() Mistake {
	if f.Text != "" {
		f.Cause = f.Text + ": " + f.Cause
	}
	return f.Mistake
}
