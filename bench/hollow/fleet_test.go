package hollow

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestMain serves commands if the tests' executable was started as a process of a fleet.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "serve" {
		if err := Serve(context.Background(), os.Args[2], os.Args[3], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// startFleet starts a fleet of processes that run one agent each.
func startFleet(t *testing.T, count int, dir string) *Fleet {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Start(count, 1, []string{"serve", path, dir}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Each process but the first is another user's and can read and write what is root's.
func TestFleet(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start processes of other users")
	}
	dir := t.TempDir()
	f := startFleet(t, 3, dir)
	users := map[string]bool{}
	for _, pid := range f.PIDs() {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(status)) {
			if fields := strings.Fields(line); fields[0] == "Uid:" {
				users[fields[2]] = true
			}
		}
	}
	if want := map[string]bool{"0": true, "2000001": true, "2000002": true}; !reflect.DeepEqual(users, want) {
		t.Errorf("the users of the processes are %v, want %v", users, want)
	}
	if report, err := f.Do(Command{Collect: true}); err != nil || report.Agents != 0 {
		t.Errorf("a command: got %+v, %v", report, err)
	}
	// The nodes' directories cannot be created, which is tried: each process gets its share.
	for _, node := range []string{"7", "8", "9"} {
		if err := os.WriteFile(filepath.Join(dir, node), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := f.Do(Command{First: 7, Start: 3})
	if want := "hollow agents: start the agent of node-000"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("no directory can be created: got %v, want %s", err, want)
	}
	if _, err := f.Do(Command{First: 10, Start: 1}); fmt.Sprint(err) != "hollow agents: 1 of 1 do not fit into 3 processes" {
		t.Errorf("more agents than fit: got %v", err)
	}
	if report, err := f.Do(Command{}); err != nil || report.Agents != 3 {
		t.Errorf("the reports' sum: got %+v, %v", report, err)
	}
	if err := f.Stop(); err != nil {
		t.Error(err)
	}
}

// Agents go to the first processes that have room, and keep their order.
func TestShare(t *testing.T) {
	f := &Fleet{perProcess: 4, processes: []*process{{agents: 0}, {agents: 0}, {agents: 0}}}
	for _, step := range []struct {
		command Command
		want    string
	}{
		{Command{First: 0, Start: 6}, "0+4 4+2 6+0"},
		{Command{}, "0+0 0+0 0+0"},
		{Command{First: 6, Start: 1}, "6+0 6+1 7+0"},
		{Command{First: 7, Start: 5}, "7+0 7+1 8+4"},
	} {
		shares, err := f.share(step.command)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, share := range shares {
			got = append(got, fmt.Sprintf("%d+%d", share.First, share.Start))
		}
		if strings.Join(got, " ") != step.want {
			t.Errorf("%+v: got %v, want %s", step.command, got, step.want)
		}
	}
}

func TestSum(t *testing.T) {
	got := sum([]Report{
		{Agents: 1, Received: 10, Sent: 100, Warnings: map[string]int{"Slow": 1}},
		{Agents: 2, Received: 20, Sent: 200, Warnings: map[string]int{"Slow": 2, "Failed": 3}},
	})
	if want := (Report{Agents: 3, Received: 30, Sent: 300, Warnings: map[string]int{"Slow": 3, "Failed": 3}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
