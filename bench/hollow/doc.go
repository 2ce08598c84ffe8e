// Package hollow runs many agents in one process: real ones, on nodes that do not
// exist. The process reads commands from its standard input and writes a report for
// each to its standard output, see [Command] and [Report].
//
// Always: each agent has its own connection, user agent and directories. Never:
// anything but agents, so that the memory of the process is theirs.
package hollow
