// Package functions is the table of functions that expressions can call. Most are sprig's
// functions of the same name, called by one adapter; the selection is Akri's. Akri's own code
// is for functions that sprig does not have, and for those that must be stricter, bounded or
// the same each time: their entries say how sprig's differ. The documentation and the tests
// are generated from the same table.
//
// Always: a function pays for its arguments, for its work and for its result
// before it spends them. Its arguments have the kinds that its entry names. It neither keeps
// nor changes them.
//
// Never: a clock, randomness, environment, file or network; the value of an
// argument in an error; a panic.
package functions
