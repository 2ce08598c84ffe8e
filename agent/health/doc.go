// Package health notices loops that are stuck, so that the kubelet restarts the agent.
//
// A [Loop] is stuck if it has work and makes no progress for longer than its limit. Time
// that a loop waits for work, and a request that ends with an error, are not held
// against it: restarting the agent does not repair the API server.
//
// Always: a check takes no lock that a loop holds during its work. Never: an effect of
// its own on a loop.
package health
