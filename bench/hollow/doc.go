// Package hollow runs many agents in a few processes: real ones, on nodes that do not
// exist. A process reads commands from its standard input and writes a report for
// each to its standard output, see [Command] and [Report]. A [Fleet] is all of them.
//
// Always: each agent has its own connection, user agent and directories. Never:
// anything but agents, so that the memory of the processes is theirs.
package hollow
