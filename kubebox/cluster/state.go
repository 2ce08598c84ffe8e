package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// state is the record of a cluster in its run directory.
type state struct {
	Name     string
	Bin      string
	Nodes    []string
	Server   string // URL for use on this machine
	Isolated bool   // false: ordinary processes; see Probe
	Purpose  string // see Config

	RoutesServices bool // known when the cluster is ready

	Pid       int    // of the supervisor
	StartTime string // of that process, as in /proc/PID/stat
	Starting  bool   // there is no supervisor yet; the process is the one that starts it
}

// NoClusterError reports that a directory holds no cluster.
type NoClusterError struct{ Dir string }

func (e *NoClusterError) Error() string { return "there is no cluster in " + e.Dir }

func stateFile(dir string) string { return filepath.Join(dir, "cluster.json") }

func (s state) write(dir string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	partial := stateFile(dir) + ".partial" // nobody reads an incomplete record, even if this process is killed
	if err := os.WriteFile(partial, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(partial, stateFile(dir))
}

func readState(dir string) (state, error) {
	var s state
	b, err := os.ReadFile(stateFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return s, &NoClusterError{dir}
	}
	if errors.Is(err, fs.ErrPermission) {
		return s, fmt.Errorf("the cluster in %s is another user's: %w: run this as that user, or choose another directory", dir, err)
	}
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%s: %w", stateFile(dir), err)
	}
	return s, nil
}

// writeStarting writes the record that a cluster has until it has a supervisor: that of this process. Without it, nobody
// could tell whose files are in the run directory if this process were killed.
func (s state) writeStarting(dir string) error {
	var err error
	s.Pid, s.Starting = os.Getpid(), true
	if s.StartTime, err = startTimeOf(s.Pid); err != nil {
		return err
	}
	return s.write(dir)
}

// alive reports whether the process is still running. Process IDs are reused,
// hence the start time.
func (s state) alive() bool {
	started, err := startTimeOf(s.Pid)
	return err == nil && started == s.StartTime
}

// startingError says that the cluster in dir is being started.
func (s state) startingError(dir string) error {
	return fmt.Errorf("the cluster in %s is being started: wait until process %d has done so, or stop that process", dir, s.Pid)
}

// startTimeOf returns the start time of a process, or an error if it does not exist
// or is a zombie.
func startTimeOf(pid int) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	return startTimeIn(pid, string(b))
}

// startTimeIn returns the start time in the content of /proc/PID/stat.
func startTimeIn(pid int, stat string) (string, error) {
	_, after, _ := strings.Cut(stat, ") ") // the name before it may contain anything else
	fields := strings.Fields(after)
	const stateField, startField = 0, 19
	if len(fields) <= startField {
		return "", fmt.Errorf("process %d has no start time", pid)
	}
	if fields[stateField] == "Z" || fields[stateField] == "X" {
		return "", fmt.Errorf("process %d has exited", pid)
	}
	return fields[startField], nil
}
