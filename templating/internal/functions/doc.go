// Package functions is the table of functions that expressions can call. Most
// have the name and behavior of a function of sprig; the selection is Akri's. The documentation
// and the tests are generated from the same table.
//
// Always: a function pays for its arguments, for its work and for its result
// before it spends them. It neither keeps nor changes its arguments.
//
// Never: a clock, randomness, environment, file or network; the value of an
// argument in an error; a panic.
package functions
