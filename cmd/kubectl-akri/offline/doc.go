// Package offline holds the commands of kubectl-akri that need no cluster: render,
// convert, lint and test, each in the file of its name.
//
// A command exits with 0 on success, with 1 if its input has errors, and with 2 if it
// was called incorrectly or cannot read a file.
//
// Never: a client, a clock, the network.
package offline
