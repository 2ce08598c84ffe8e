// Command cluster builds, starts and ends real Kubernetes clusters on this
// machine. See package cluster for what they are.
package main
