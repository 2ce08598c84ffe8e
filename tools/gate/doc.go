// Gate runs the stages of a check, and says last what failed and why:
//
//	gate [-stop-after STAGE,STAGE] STAGE...
//
// A stage is the name of a make target, which may be followed by variables, without
// spaces in their values, as in "test TESTFLAGS=-race". A failed stage does not stop the next one, unless -stop-after
// lists it. The targets write the events of their tests, as "go test -json" prints
// them, to files in bin/tests.
//
// A test that failed and then passed when gotestsum repeated it is reported as flaky,
// and does not fail the check. It does if the first failure was a data race, a
// violation that a model found, or a timeout, if the package failed outside of its
// tests, or if more than three tests of the run were flaky.
package main
