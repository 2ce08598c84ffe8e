// Command cluster builds, starts and stops real Kubernetes clusters on this machine.
// Package cluster describes them.
package main
