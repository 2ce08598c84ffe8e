package fault

import (
	"errors"
	"fmt"
)

// Whole is the offset of a fault that concerns a text as a whole.
const Whole = -1

// Fault is a mistake inside one text. It does not contain the template or the field
// that the text is in.
type Fault struct {
	Offset int // in bytes; negative: the text as a whole
	Cause  error
	Hint   string
}

func (f *Fault) Error() string { return f.Cause.Error() }

// Newf returns a fault at an offset. The cause is formatted like fmt.Errorf.
func Newf(offset int, hint, format string, args ...any) *Fault {
	return &Fault{Offset: offset, Cause: fmt.Errorf(format, args...), Hint: hint}
}

// Hinted is an error with a remedy. At moves the remedy into the fault.
type Hinted struct {
	Cause error
	Hint  string
}

func (h *Hinted) Error() string { return h.Cause.Error() }

// Unwrap returns the cause.
func (h *Hinted) Unwrap() error { return h.Cause }

// Hintf returns an error with a remedy. The cause is formatted like fmt.Errorf.
func Hintf(hint, format string, args ...any) error {
	return &Hinted{Cause: fmt.Errorf(format, args...), Hint: hint}
}

// At returns err as a fault at an offset. A fault keeps its own offset;
// an error with a remedy keeps the remedy.
func At(offset int, err error) *Fault {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	if h, ok := errors.AsType[*Hinted](err); ok {
		return &Fault{Offset: offset, Cause: h.Cause, Hint: h.Hint}
	}
	f := &Fault{Offset: offset, Cause: err}
	if remedy, ok := errors.AsType[interface {
		error
		Remedy() string
	}](err); ok {
		f.Hint = remedy.Remedy()
	}
	return f
}
