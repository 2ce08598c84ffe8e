package fault

import (
	"errors"
	"fmt"
)

// Whole is the offset of a fault that concerns a text as a whole, or whose place in it is
// not known yet.
const Whole = -1

// Fault is a mistake inside one text. It does not contain the template or the field
// that the text is in.
type Fault struct {
	Offset int // in bytes, or Whole
	Cause  error
	Hint   string
}

func (f *Fault) Error() string { return f.Cause.Error() }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }

// Newf returns a fault at an offset. The cause is formatted like fmt.Errorf.
func Newf(offset int, hint, format string, args ...any) *Fault {
	return &Fault{Offset: offset, Cause: fmt.Errorf(format, args...), Hint: hint}
}

// Hintf returns a fault whose place At adds.
func Hintf(hint, format string, args ...any) error { return Newf(Whole, hint, format, args...) }

// At returns err as a fault. It is at the offset, unless it has one already.
func At(offset int, err error) *Fault {
	f, ok := errors.AsType[*Fault](err)
	switch {
	case !ok:
		return &Fault{Offset: offset, Cause: err}
	case f.Offset == Whole:
		return &Fault{Offset: offset, Cause: f.Cause, Hint: f.Hint}
	}
	return f
}
