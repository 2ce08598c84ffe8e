package templating

import (
	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/expr"
)

// Limits that authors may reach.
const (
	// MaxTemplates is the number of templates that a list may have.
	MaxTemplates = 64
	// MaxElements is the number of objects that one for-each may create.
	MaxElements = 1000
	// MaxExpressionBytes is the limit of the expressions in a string.
	MaxExpressionBytes = expr.MaxBytes
	// MaxObjectBytes is the size limit of one rendered object.
	MaxObjectBytes = budget.MaxObjectBytes

	// maxCompiled is the memory, in bytes, that the expressions of one template
	// may take to compile.
	maxCompiled = 8 << 20
	// maxCompiledTemplates bounds the cost of compiling a list, in templates that
	// use up maxCompiled.
	maxCompiledTemplates = 2
)

// ErrLimit is the cause of a diagnostic if a template is too large or too expensive.
var ErrLimit = budget.ErrLimit
