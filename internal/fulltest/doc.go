// Package fulltest marks tests that the gate leaves to "make full", those that take long or
// that depend on how fast the machine is, and has the seeds of random tests.
package fulltest
