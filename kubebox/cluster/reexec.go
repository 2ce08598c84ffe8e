package cluster

import (
	"errors"

	"akri.sh/akri/kubebox/cluster/internal/supervisor"
)

var reexecCalled bool

// Reexec must be called at the start of main or TestMain of a program that starts
// clusters. In a supervisor process, or the first process of a node, it does that
// process's work and never returns; in other processes it does nothing.
func Reexec() {
	supervisor.RunRole()
	reexecCalled = true
}

// checkReexec returns an error unless Reexec has been called.
func checkReexec() error {
	if !reexecCalled {
		return errors.New("cluster.Reexec was not called: call it at the start of main or TestMain")
	}
	return nil
}
