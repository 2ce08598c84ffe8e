package templating

import (
	"errors"
	"slices"

	"akri.sh/akri/templating/internal/fault"
)

// maxDiagnostics is the number of diagnostics reported for one template.
const maxDiagnostics = 50

// reporter collects the diagnostics of one template.
type reporter struct {
	origin Origin
	// secret is set for a template of a Secret.
	secret bool
	diags  Diagnostics
	more   int // diagnostics beyond maxDiagnostics
}

// report records a fault at field. Text is the author's string if the fault is
// inside it.
func (r *reporter) report(field Path, text string, f *fault.Fault) {
	if len(r.diags) == maxDiagnostics {
		r.more++
		return
	}
	d := newDiagnostic(slices.Clone(field), text, f)
	d.Origin = r.origin
	d.Secret = r.secret && len(field) > 0 && (field[0].Key == "data" || field[0].Key == "stringData")
	r.diags = append(r.diags, d)
}

// reportf records that the value at field is wrong as a whole.
func (r *reporter) reportf(field Path, hint, format string, args ...any) {
	r.report(field, "", fault.Newf(fault.Whole, hint, format, args...))
}

// full reports whether further diagnostics would not be shown.
func (r *reporter) full() bool { return r.more > 0 }

// diagnostics returns what was reported. If there is more, message says so.
func (r *reporter) diagnostics(message string) Diagnostics {
	if r.full() {
		r.diags = append(r.diags, Diagnostic{Origin: r.origin.Template(), Cause: errors.New(message)})
	}
	return r.diags
}

// reportBug is the hint for faults that are Akri's own.
const reportBug = "this is a bug in Akri: please report it with the template"
