package hollow

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"
)

// firstUser is the user ID of a fleet's second process, and each further process has the
// next one. Such users do not have to exist.
const firstUser = 2_000_001

// Fleet is a number of processes that run agents. Each process runs as a different user,
// because the kernel limits the file watches of each user.
type Fleet struct {
	processes  []*process
	perProcess int
}

// Start starts the processes that count agents need if each process runs up to perProcess
// of them. The arguments are a command line that, with the program's own executable, leads
// to a call of [Serve] with its standard input and output. The standard error of all
// processes goes to log. Starting more than one process requires root.
func Start(count, perProcess int, arguments []string, log *os.File) (*Fleet, error) {
	f := &Fleet{perProcess: perProcess}
	for room := 0; room < count; room += perProcess {
		user := uint32(0)
		if further := len(f.processes); further > 0 {
			user = firstUser + uint32(further) - 1
		}
		p, err := startProcess(arguments, log, user)
		if err != nil {
			return nil, errors.Join(err, f.Stop())
		}
		f.processes = append(f.processes, p)
	}
	return f, nil
}

// PIDs returns the process IDs.
func (f *Fleet) PIDs() []int {
	var all []int
	for _, p := range f.processes {
		all = append(all, p.command.Process.Pid)
	}
	return all
}

// Do sends a command to all processes at once, which share the agents that it starts, and
// returns the sums of their reports.
func (f *Fleet) Do(command Command) (Report, error) {
	shares, err := f.share(command)
	if err != nil {
		return Report{}, err
	}
	reports := make([]Report, len(f.processes))
	var group errgroup.Group
	for i, p := range f.processes {
		group.Go(func() (err error) {
			reports[i], err = p.do(shares[i])
			return err
		})
	}
	err = group.Wait()
	return sum(reports), err
}

// share returns the command for each process.
func (f *Fleet) share(command Command) ([]Command, error) {
	var shares []Command
	next, left := command.First, command.Start
	for _, p := range f.processes {
		share := command
		share.First, share.Start = next, min(left, f.perProcess-p.agents)
		p.agents += share.Start
		next, left = next+share.Start, left-share.Start
		shares = append(shares, share)
	}
	if left > 0 {
		return nil, fmt.Errorf("hollow agents: %d of %d do not fit into %d processes", left, command.Start, len(f.processes))
	}
	return shares, nil
}

// sum returns the sums of reports.
func sum(reports []Report) Report {
	all := Report{Warnings: map[string]int{}}
	for _, r := range reports {
		all.Agents += r.Agents
		all.Received += r.Received
		all.Sent += r.Sent
		for message, count := range r.Warnings {
			all.Warnings[message] += count
		}
	}
	return all
}

// Stop stops all agents and waits until the processes have exited.
func (f *Fleet) Stop() error {
	var errs []error
	for _, p := range f.processes {
		errs = append(errs, p.stop())
	}
	return errors.Join(errs...)
}
