// Package functions is the table of functions that expressions can call. Most are
// those of sprig, by name and behavior; the list is Akri's own. The documentation
// and the tests are generated from the same table.
//
// Always: a function pays for its arguments, for its work and for its result
// before it spends them. It neither keeps nor changes its arguments.
//
// Never: a clock, randomness, environment, file or network; the value of an
// argument in an error; a panic.
package functions
