package slots

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// property is the property of debugEcho's devices. Its value is different for each
// device of these tests, and identifies the device.
const property = "DEBUG_ECHO_DESCRIPTION"

// user is a running process with devices: the only process of a container.
type user struct {
	pid, started string
	node         string
	namespace    string // $NAMESPACE, which the tests' manifests set
	pod          string
	container    string            // $CONTAINER, which the tests' manifests set
	devices      []string          // values of the property
	environment  map[string]string // of the process
}

// processes reads the processes of a cluster's containers from /proc. Nodes have PID
// namespaces below this machine's, so all their processes are visible here.
type processes struct {
	cluster string

	mu    sync.Mutex
	known map[string]user // by process ID and start time
}

func newProcesses(clusterName string) *processes {
	return &processes{cluster: clusterName, known: map[string]user{}}
}

// programs are the names of the programs that run in the tests' containers.
var programs = []string{"workload", "akri-agent", "akri-controller", "akri-discovery"}

// running returns the running processes of all Pods, in no particular order.
func (p *processes) running() []user {
	p.mu.Lock()
	defer p.mu.Unlock()
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	seen := map[string]user{}
	for _, file := range files {
		program, started, alive := parseStat(file)
		if !alive || !slices.Contains(programs, program) {
			continue
		}
		pid := filepath.Base(filepath.Dir(file))
		key := pid + "@" + started
		found, ok := p.known[key]
		if !ok {
			if found, ok = p.read(pid, started); !ok {
				continue // it has exited, or belongs to another cluster
			}
		}
		seen[key] = found
	}
	p.known = seen
	return slices.Collect(maps.Values(seen))
}

// parseStat returns the name and the start time of a process, and whether it is alive:
// neither gone nor a zombie.
func parseStat(file string) (program, started string, alive bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", "", false
	}
	head, tail, found := strings.Cut(string(text), ") ") // the names of the programs contain no parenthesis
	fields := strings.Fields(tail)
	const stateField, startField = 0, 19
	if !found || len(fields) <= startField {
		return "", "", false
	}
	_, program, _ = strings.Cut(head, "(")
	return program, fields[startField], fields[stateField] != "Z" && fields[stateField] != "X"
}

// read reads a process of a container.
func (p *processes) read(pid, started string) (user, bool) {
	u := user{pid: pid, started: started, environment: map[string]string{}}
	groups, err := os.ReadFile(filepath.Join("/proc", pid, "cgroup"))
	if err != nil {
		return u, false
	}
	_, below, found := bytes.Cut(groups, []byte("/"+p.cluster+"/"))
	if !found {
		return u, false
	}
	node, _, _ := bytes.Cut(below, []byte("/"))
	u.node = string(node)
	text, err := os.ReadFile(filepath.Join("/proc", pid, "environ"))
	if err != nil || len(text) == 0 {
		return u, false
	}
	for setting := range strings.SplitSeq(string(text), "\x00") {
		name, value, _ := strings.Cut(setting, "=")
		u.environment[name] = value
		if strings.HasPrefix(name, property+"_") {
			u.devices = append(u.devices, value)
		}
	}
	slices.Sort(u.devices)
	u.namespace, u.pod, u.container = u.environment["NAMESPACE"], u.environment["HOSTNAME"], u.environment["CONTAINER"]
	return u, true
}

// alive reports whether the process still runs.
func (u user) alive() bool {
	_, started, alive := parseStat(filepath.Join("/proc", u.pid, "stat"))
	return alive && started == u.started
}

// String describes the user in a failed test.
func (u user) String() string {
	return fmt.Sprintf("process %s (container %s of pod %s on %s, devices %v)", u.pid, u.container, u.pod, u.node, u.devices)
}

// of returns the running containers of a Pod of the test, by name of the container.
func (w *world) of(pod string) map[string]user {
	found := map[string]user{}
	for _, u := range w.processes.running() {
		if u.namespace == w.namespace && u.pod == pod {
			found[u.container] = u
		}
	}
	return found
}

// usersOf returns the running containers that have a device.
func (w *world) usersOf(device string) []user {
	var found []user
	for _, u := range w.processes.running() {
		if slices.Contains(u.devices, device) {
			found = append(found, u)
		}
	}
	return found
}

// container waits for a container of a Pod to run.
func (w *world) container(pod, name string) user {
	w.t.Helper()
	var found user
	w.eventually(fmt.Sprintf("container %s of pod %s runs", name, pod), func() string {
		var ok bool
		if found, ok = w.of(pod)[name]; !ok {
			return w.describe(pod)
		}
		return ""
	})
	return found
}

// describe returns the state of a Pod for a failed test.
func (w *world) describe(pod string) string {
	w.t.Helper()
	o, found := w.find("Pod", pod)
	if !found {
		return "the pod does not exist"
	}
	return fmt.Sprintf("%s %s %s on %q", o.Status.Phase, o.Status.Reason, o.Status.Message, o.Spec.NodeName)
}

// violations compares the running containers with the record. It returns what is wrong:
//
//   - a device in more containers than it has slots;
//   - a node with more containers that have a device than it owns slots of it;
//   - more owners than slots.
//
// A container that has just started or ended causes no violation: only those count that
// run before and after the record is read.
func (w *world) violations() ([]string, error) {
	before := w.processes.running()
	instances, err := w.tryList("Instance", "")
	if err != nil {
		return nil, err
	}
	w.instances.Store(&instances)
	running := slices.DeleteFunc(before, func(u user) bool { return !u.alive() })
	var found []string
	for _, instance := range instances {
		found = append(found, compare(instance, running)...)
	}
	return found, nil
}

// doubled returns the devices that are in more containers than they have slots. It needs
// no API server: it knows the Instances and their capacities from before.
func (w *world) doubled() (violations []string) {
	known := w.instances.Load()
	if known == nil {
		return nil
	}
	return crowded(*known, w.processes.running())
}

// crowded returns the devices that are in more containers than they have slots.
func crowded(instances []object, running []user) (violations []string) {
	for _, instance := range instances {
		if users := usersAmong(running, instance); len(users) > instance.Spec.Capacity {
			violations = append(violations, "more containers than slots: "+describe(instance, users))
		}
	}
	return violations
}

func TestCrowded(t *testing.T) {
	var instance object
	instance.Spec.Capacity, instance.Spec.BrokerProperties = 1, map[string]string{property: "cam"}
	has := func(device string) user { return user{devices: []string{device}} }
	for devices, want := range map[string]int{"": 0, "cam": 0, "cam door": 0, "cam cam": 1, "cam door cam": 1} {
		var running []user
		for device := range strings.FieldsSeq(devices) {
			running = append(running, has(device))
		}
		if found := crowded([]object{instance}, running); len(found) != want {
			t.Errorf("containers with %q: %q, want %d violations", devices, found, want)
		}
	}
}

// usersAmong returns the containers that have the device of an Instance.
func usersAmong(running []user, instance object) []user {
	return slices.DeleteFunc(slices.Clone(running), func(u user) bool {
		return !slices.Contains(u.devices, instance.Spec.BrokerProperties[property])
	})
}

// describe describes the record of an Instance and the containers that have its device.
func describe(instance object, users []user) string {
	return fmt.Sprintf("%s: capacity %d, deviceUsage %v, containers %v",
		instance.Metadata.Name, instance.Spec.Capacity, instance.Spec.DeviceUsage, users)
}

// compare compares the record of an Instance with containers.
func compare(instance object, running []user) (violations []string) {
	owned, used := map[string]int{}, map[string]int{}
	total := 0
	for _, owner := range instance.Spec.DeviceUsage {
		if node := nodeOf(owner); node != "" {
			owned[node]++
			total++
		}
	}
	violations = crowded([]object{instance}, running)
	users := usersAmong(running, instance)
	for _, u := range users {
		used[u.node]++
	}
	state := describe(instance, users)
	if total > instance.Spec.Capacity {
		violations = append(violations, "more owners than slots: "+state)
	}
	for node, count := range used {
		if count > owned[node] {
			violations = append(violations, fmt.Sprintf("a slot of a running container is not owned by %s: %s", node, state))
		}
	}
	return violations
}

// nodeOf returns the node of an owner in deviceUsage: NODE or C:ID:NODE. A free slot
// has none.
func nodeOf(owner string) string {
	return owner[strings.LastIndexByte(owner, ':')+1:]
}

// consistent fails the test if the record and the running containers disagree.
func (w *world) consistent() {
	w.t.Helper()
	found, err := w.violations()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, violation := range found {
		w.t.Error(violation)
	}
}

// monitor checks the invariants until it is stopped, or the test ends, and fails the test
// if one is violated. While the API server does not answer there is nothing to compare.
func (w *world) monitor() (stop func()) {
	return w.monitorThat(func(string) bool { return true })
}

// monitorThat is like monitor, but ignores violations that do not matter.
func (w *world) monitorThat(matters func(violation string) bool) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	checks, offline := 0, 0
	go func() {
		defer close(ended)
		for {
			found, err := w.violations()
			if err == nil {
				checks++
			} else {
				offline++
				found = w.doubled()
			}
			for _, violation := range found {
				if matters(violation) {
					w.t.Error(violation)
				}
			}
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		close(done)
		<-ended
		w.t.Logf("the record and the running containers were compared %d times, %d times without the API server", checks+offline, offline)
	})
	w.t.Cleanup(stop)
	return stop
}
