package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

const (
	// maxReaction bounds how long the demo may need to follow a command.
	maxReaction = time.Minute
	// maxStart is how long the demo may need once everything is built. It is half a minute
	// on two idle cores.
	maxStart = time.Minute
	// maxMemory is what all processes of the demo may use together, in bytes. Memory that
	// several share counts once.
	maxMemory = 1_500_000_000
)

// printedDemo is a demo that was started as users start it, and what it has printed.
type printedDemo struct {
	*cluster.Cluster
	dir    localDemo
	output string
}

// TestLocalDemo does what the README says: make demo, its pages and its commands, the
// things to try, and make demo-down. Nothing is left then.
func TestLocalDemo(t *testing.T) {
	clustertest.Full(t)
	if err := cluster.Probe(); err != nil {
		clustertest.Skip(t, err)
	}
	parent, err := os.MkdirTemp("/tmp", "demo-") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(parent) })
	d := printedDemo{dir: localDemo(filepath.Join(parent, "demo"))}
	mounts := machineMounts(t)
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			if err := d.dir.down(); err != nil {
				t.Error(err)
			}
		}
	})

	var progress string
	d.output, progress = runPrinted(t, d.dir.makeTarget("demo"))
	if d.Cluster, err = cluster.Open(string(d.dir)); err != nil {
		t.Fatal(err)
	}
	assertQuick(t, progress)
	t.Run("the pages answer", d.testPages)
	t.Run("it fits into the memory of a small machine", d.testMemory)
	t.Run("the printed commands unplug devices and plug them in", d.testPlugs)
	t.Run("the things to try", d.testThingsToTry)
	t.Run("once more, it shows what runs", func(t *testing.T) {
		again, progress := runPrinted(t, d.dir.makeTarget("demo"))
		if !strings.Contains(progress, "already running in "+string(d.dir)+"; stop it with: "+d.dir.makeTarget("demo-down")) {
			t.Errorf("it does not say that it is running:\n%s", progress)
		}
		if !strings.Contains(again, "Configuration default/cameras") {
			t.Errorf("it does not show the cameras:\n%s", again)
		}
	})
	t.Run("after an interruption, it starts again", d.testInterruption)

	processes := d.processes(t)
	runPrinted(t, d.section("Stop the demo and remove everything:")[0])
	stopped = true
	if _, err := os.Lstat(string(d.dir)); !os.IsNotExist(err) {
		t.Errorf("%s still exists: %v", d.dir, err)
	}
	if after := machineMounts(t); after != mounts {
		t.Errorf("the machine's mounts were\n%s\nand are\n%s", mounts, after)
	}
	clustertest.Eventually(t, 5*time.Second, "its processes end", func() string {
		left := slices.DeleteFunc(slices.Clone(processes), func(p demoProcess) bool { return startTime(p.pid) != p.started })
		if len(left) > 0 {
			return fmt.Sprint(left)
		}
		return ""
	})
}

// testInterruption makes the demo as incomplete as one that was killed while it installed Akri.
func (d printedDemo) testInterruption(t *testing.T) {
	if _, err := d.Kubectl(t.Context(), "delete", "crd", "configurations.akri.sh"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(d.dir.mark()); err != nil {
		t.Fatal(err)
	}
	again, progress := runPrinted(t, d.dir.makeTarget("demo"))
	told := strings.Contains(progress, "the demo in "+string(d.dir)+" is not complete")
	if !told || !strings.Contains(again, "Configuration default/cameras") {
		t.Errorf("it says\n%s\nand shows\n%s", progress, again)
	}
}

// assertQuick fails the test if the demo took too long once everything was built.
func assertQuick(t *testing.T, progress string) {
	t.Helper()
	match := regexp.MustCompile(`ready after (\d+)s`).FindStringSubmatch(progress)
	if match == nil {
		t.Fatalf("it does not say when it was ready:\n%s", progress)
	}
	seconds, err := strconv.Atoi(match[1])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %d s", seconds)
	if took := time.Duration(seconds) * time.Second; took > maxStart {
		t.Errorf("the demo was ready after %v, want at most %v", took, maxStart)
	}
}

func (d printedDemo) testPages(t *testing.T) {
	pages := regexp.MustCompile(`(?m)^  (http://127\.0\.0\.1:\d+/\S*)  (.+) \(Service \S+\)$`).FindAllStringSubmatch(d.output, -1)
	var titles []string
	for _, each := range pages {
		titles = append(titles, each[2])
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, each[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			continue
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s answers with %s", each[1], response.Status)
		}
	}
	slices.Sort(titles)
	if want := []string{"all cameras", "camera door", "camera hall", "metrics of the oven"}; !slices.Equal(titles, want) {
		t.Errorf("the pages are of %q, want %q", titles, want)
	}
}

func (d printedDemo) testMemory(t *testing.T) {
	var sum int
	for _, p := range d.processes(t) {
		rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.pid))
		if err != nil {
			continue // it has ended
		}
		match := regexp.MustCompile(`(?m)^Pss: +(\d+) kB$`).FindSubmatch(rollup)
		if match == nil {
			continue // it is ending
		}
		size, err := strconv.Atoi(string(match[1]))
		if err != nil {
			t.Fatal(err)
		}
		sum += size * 1024
	}
	t.Logf("all processes use %d MB", sum/1_000_000)
	if sum == 0 || sum > maxMemory {
		t.Errorf("the demo's processes use %d bytes, want at most %d", sum, maxMemory)
	}
}

func (d printedDemo) testPlugs(t *testing.T) {
	d.shell(t, d.section("Unplug a device, and watch its objects go:"))
	d.await(t, map[string]int{"akri-debug-echo-foo": 0, "cameras": 1, "oven": 0})
	d.shell(t, d.section("Plug it in again:"))
	d.await(t, map[string]int{"akri-debug-echo-foo": 2, "cameras": 2, "oven": 1})
}

func (d printedDemo) testThingsToTry(t *testing.T) {
	const cameras = "--selector=akri.sh/configuration=cameras"
	get := func(kinds, output string) []string {
		t.Helper()
		text, err := d.Kubectl(t.Context(), "--namespace=default", "get", kinds, cameras, "--output=jsonpath={.items[*]."+output+"}")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(text))
	}
	name := get("instances", "metadata.name")[0]
	read := func() string {
		text, err := d.Kubectl(t.Context(), "--namespace=default", "get", "service", name, "--ignore-not-found",
			"--output=jsonpath={.metadata.uid}")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	uid := read()
	if _, err := d.Kubectl(t.Context(), "--namespace=default", "delete", "service", name); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, maxReaction, "the Service of a camera is created again", func() string {
		if now := read(); now == "" || now == uid {
			return fmt.Sprintf("its UID was %s and is %q", uid, now)
		}
		return ""
	})
	if _, err := d.Kubectl(t.Context(), "--namespace=default", "delete", "configuration", "cameras"); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, maxReaction, "everything of the Configuration is deleted", func() string {
		return strings.Join(get("instances,deployments,services", "metadata.name"), " ")
	})
	manifest := filepath.Join(root(t), "examples", "cameras", "configuration.yaml")
	if _, err := d.Kubectl(t.Context(), "apply", "--server-side", "-f", manifest); err != nil {
		t.Fatal(err)
	}
	d.await(t, map[string]int{"akri-debug-echo-foo": 2, "cameras": 2, "oven": 1})
}

// await waits until these Configurations have so many Instances, and are Ready unless they
// have none.
func (d printedDemo) await(t *testing.T, want map[string]int) {
	t.Helper()
	clustertest.Eventually(t, maxReaction, "the Instances", func() string {
		text, err := d.Kubectl(t.Context(), "--namespace=default", "get", "configurations", "--output=json")
		if err != nil {
			return err.Error()
		}
		var list struct {
			Items []struct {
				Metadata struct{ Name string }
				Status   struct{ Instances, ReadyInstances int }
			}
		}
		if err := json.Unmarshal(text, &list); err != nil {
			return err.Error()
		}
		for _, each := range list.Items {
			if n := want[each.Metadata.Name]; each.Status.Instances != n || each.Status.ReadyInstances != n {
				return fmt.Sprintf("%s has %d, ready are %d, want %d", each.Metadata.Name, each.Status.Instances, each.Status.ReadyInstances, n)
			}
		}
		if len(list.Items) != len(want) {
			return fmt.Sprintf("there are %d Configurations, want %d", len(list.Items), len(want))
		}
		return ""
	})
}

// section returns the indented lines after a line of the output.
func (d printedDemo) section(heading string) []string {
	var lines []string
	_, after, _ := strings.Cut(d.output, "\n"+heading+"\n")
	for line := range strings.Lines(after) {
		if !strings.HasPrefix(line, "  ") {
			break
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// shell runs printed commands in a shell, with the PATH that is printed, too.
func (d printedDemo) shell(t *testing.T, commands []string) {
	t.Helper()
	if len(commands) == 0 {
		t.Fatalf("the commands are not in the output:\n%s", d.output)
	}
	exported := d.section("Explore the cluster:")[0]
	script := strings.Join(append([]string{"set -e", exported}, commands...), "\n")
	if output, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%s\n%v: %s", script, err, output)
	}
}

// runPrinted runs a command of the README or of the demo's output, and returns what it
// prints to standard output and to standard error.
func runPrinted(t *testing.T, text string) (output, progress string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh", "-c", text)
	command.Dir = root(t)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", text, err, stderr.String(), stdout.String())
	}
	return stdout.String(), stderr.String()
}

// root returns the root of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := build.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// machineMounts returns the mounts of the machine.
func machineMounts(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// demoProcess is a process of the demo. Process IDs are reused, hence its start time.
type demoProcess struct {
	pid     int
	started string
}

// processes returns the processes of the demo's cluster, with those of its Pods.
func (d printedDemo) processes(t *testing.T) []demoProcess {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(string(d.dir), "cluster.json"))
	if err != nil {
		t.Fatal(err)
	}
	var supervisor struct{ Pid int }
	if err := json.Unmarshal(text, &supervisor); err != nil {
		t.Fatal(err)
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	children := map[int][]int{}
	for _, stat := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err != nil {
			t.Fatal(err)
		}
		if fields := statOf(pid); fields != nil {
			parent, _ := strconv.Atoi(fields[1])
			children[parent] = append(children[parent], pid)
		}
	}
	var found []demoProcess
	for waiting := []int{supervisor.Pid}; len(waiting) > 0; waiting = waiting[1:] {
		found = append(found, demoProcess{waiting[0], startTime(waiting[0])})
		waiting = append(waiting, children[waiting[0]]...)
	}
	return found
}

// startTime returns when a process was started, or "" if it has ended.
func startTime(pid int) string {
	fields := statOf(pid)
	if fields == nil || fields[0] == "Z" { // a zombie has ended
		return ""
	}
	return fields[19]
}

// statOf returns the fields of /proc/PID/stat after the name, or nil if the process has
// ended.
func statOf(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	_, after, _ := strings.Cut(string(text), ") ")
	return strings.Fields(after)
}
