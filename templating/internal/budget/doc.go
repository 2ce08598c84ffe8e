// Package budget bounds what a template may cost. Evaluation pays for each step,
// each byte and each pass of a loop before it spends it.
//
// Always: the cause is [ErrLimit] beyond a limit, and no template, however hostile,
// costs more than the limits below.
//
// Never: a clock. The same template always fails at the same step.
package budget
