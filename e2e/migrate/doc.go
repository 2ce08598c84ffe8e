// Package migrate runs the script that kubectl akri migrate plan prints, on a cluster
// with objects as the original Akri writes them, by kubectl and by Helm, and goes the way
// back of docs/migrate-from-akri.md.
//
// Always: every command of the script is run as printed. Never: Akri's own programs; a
// workload that waits stands in for its controller and agents.
package migrate
