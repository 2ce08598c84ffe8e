package cluster

import (
	"errors"

	"akri.sh/akri/kubebox/cluster/internal/supervisor"
)

var reexecCalled bool

// Reexec must be called first in main or TestMain of a program that starts
// clusters. In a process that is a cluster's supervisor or the first process of
// a node it does that work and never returns; in all others it does nothing.
func Reexec() {
	supervisor.Become()
	reexecCalled = true
}

func checkReexec() error {
	if !reexecCalled {
		return errors.New("cluster.Reexec must be called at the start of main or TestMain: the executable is its own supervisor")
	}
	return nil
}
