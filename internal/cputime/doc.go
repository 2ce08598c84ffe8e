// Package cputime measures what code costs, for tests: the processor time of a thread does
// not depend on the load of the machine.
package cputime
