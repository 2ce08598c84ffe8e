// Package offline holds the commands of kubectl-akri that need no cluster: render,
// convert, lint and test. Open the file named for a command; finding.go is how
// mistakes are shown, files.go how files are read.
//
// Results go to stdout, everything else to stderr. A command ends with 0 when all
// is well, with 1 when something is wrong with what it was given, and with 2 when
// it was called wrongly or a file cannot be read.
//
// Never: a client, a clock, the network.
package offline
