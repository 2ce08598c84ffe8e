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

// state is what a run directory tells about its cluster.
type state struct {
	Name     string
	Bin      string
	Nodes    []string
	Server   string // as reached from this machine
	Isolated bool   // false: ordinary processes, see Probe
	Pid      int    // of the supervisor
	Born     string // when that process began, as the kernel tells it
}

// NoClusterError says that a directory holds no cluster.
type NoClusterError struct{ Dir string }

func (e *NoClusterError) Error() string { return "there is no cluster in " + e.Dir }

func stateFile(dir string) string { return filepath.Join(dir, "cluster.json") }

func (s state) write(dir string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(stateFile(dir), append(b, '\n'), 0o600)
}

func readState(dir string) (state, error) {
	var s state
	b, err := os.ReadFile(stateFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return s, &NoClusterError{dir}
	}
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%s: %w", stateFile(dir), err)
	}
	return s, nil
}

// alive tells whether the supervisor still runs. A process number is used again
// after a while, hence the time of birth.
func (s state) alive() bool {
	born, err := bornAt(s.Pid)
	return err == nil && born == s.Born
}

// bornAt returns when a process began, or an error if there is none or it is a
// zombie.
func bornAt(pid int) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	_, after, _ := strings.Cut(string(b), ") ") // the name before it may hold anything but this
	fields := strings.Fields(after)
	const stateField, bornField = 0, 19
	if len(fields) <= bornField {
		return "", fmt.Errorf("process %d has no times", pid)
	}
	if fields[stateField] == "Z" || fields[stateField] == "X" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return fields[bornField], nil
}
