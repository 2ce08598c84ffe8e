package deviceplugin

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/fulltest"
)

var (
	nodesSchedules = flag.Int("nodes.schedules", 200, "number of random schedules of TestNodes and of TestFreshNodes, with AKRI_FULL=1")
	nodesSeed      = flag.Uint64("nodes.seed", 0, "run only the schedule of TestNodes with this seed, with a log")
)

const (
	group = "cam" // the Configuration
	steps = 60    // of a schedule
	// gateNodes is the number of schedules in the gate, whose seeds are fixed.
	gateNodes = 20
	// maxRelease bounds the time from the end of a Pod until its slots are free (I7).
	maxRelease = 12 * time.Second
	// maxDowntime bounds the time from a crash of an agent until it starts again.
	maxDowntime = 10 * time.Second
	// maxSettle bounds the time from the start of an agent until the discovery handlers
	// have reported.
	maxSettle = 2 * time.Second
	// maxRetry bounds the delay before an agent publishes again after an error.
	maxRetry = 30 * time.Second
	// maxRewatch bounds the time until watches work again after an outage, and devices are
	// published. It is longer than a lost request may be late.
	maxRewatch = maxSilence + maxRetry + 15*time.Second
)

var instanceType = metav1.TypeMeta{APIVersion: v0.GroupVersion.String(), Kind: v0.InstanceKind.Kind}

// TestNodes runs several agents, each with a kubelet, on one API server, all in memory and
// in the time of a bubble. An agent is its serving half and its publisher; what discovery
// handlers report is part of the schedule. Pods of both levels come and go at random, some
// deleted by force; kubelets stall and restart; agents restart
// and crash; nodes leave and join devices, some of them local; requests are delayed,
// lost, refused and repeated; users delete Instances and edit their owners and capacities.
// The invariants of package slots are checked after each step, as the containers see them.
//
// A seed fixes the steps, their times, and what happens to each request. It does not fix
// the order of what happens at the same time, nor the delays that agents and client-go
// choose at random: a schedule that fails may have to be repeated (-count=20).
func TestNodes(t *testing.T) {
	prepareNodes(t)
	if *nodesSeed != 0 {
		schedule(t, *nodesSeed, reached{}, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})))
		return
	}
	count := uint64(gateNodes)
	if fulltest.Enabled() {
		count = max(count, uint64(*nodesSchedules))
	}
	runNodes(t, 1, count).verify(t)
}

// TestFreshNodes runs schedules that were not run for an earlier commit.
func TestFreshNodes(t *testing.T) {
	seed, count := fulltest.Fresh(t), uint64(*nodesSchedules)
	prepareNodes(t)
	runNodes(t, seed*count, count) // commits a second apart have no seed in common
}

// TestSoak runs schedules for as long as "make soak" says.
func TestSoak(t *testing.T) {
	prepareNodes(t)
	const batch = 50
	fulltest.Soak(t, func(seed uint64) uint64 {
		runNodes(t, seed, batch)
		return seed + batch
	})
}

// prepareNodes lets client-go work in a bubble, until the test ends.
func prepareNodes(t *testing.T) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	// After an error, client-go sleeps relative to the last one: in the time of a bubble,
	// for decades.
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	t.Cleanup(func() {
		utilruntime.ErrorHandlers = handlers
		klog.LogToStderr(true)
	})
}

// runNodes runs the schedules with count seeds, up to the first that fails.
func runNodes(t *testing.T, first, count uint64) reached {
	t.Helper()
	total := reached{}
	for seed := first; seed < first+count; seed++ {
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { schedule(t, seed, total, slog.New(slog.DiscardHandler)) }) {
			t.Fatalf("repeat with: go test ./agent/serve/deviceplugin -run TestNodes -nodes.seed=%d -count=20", seed)
		}
	}
	t.Logf("seeds %d to %d: %v", first, first+count-1, total)
	return total
}

// reached counts what the schedules reach.
type reached map[string]int

// What is counted, next to acts.
const (
	leftInUse    = "a node left an Instance whose slots it has"
	createdAgain = "an Instance was created again"
	claimed      = "an owner was written"
	released     = "an owner was removed"
	judged       = "slots in use were checked"
	excused      = "slots in use were excused"
	localDevices = "a device was local"
)

// verify verifies that the schedules reach what they should, and that checks are an
// exception where they are left out.
func (r reached) verify(t *testing.T) {
	t.Helper()
	for _, a := range acts {
		if r[a.name] == 0 {
			t.Errorf("never: %s", a.name)
		}
	}
	if fulltest.Enabled() && r[leftInUse] == 0 { // too seldom for the gate
		t.Errorf("never: %s", leftInUse)
	}
	for _, name := range []string{createdAgain, claimed, released, localDevices} {
		if r[name] == 0 {
			t.Errorf("never: %s", name)
		}
	}
	if r[excused]*3 > r[judged] {
		t.Errorf("%d slots in use were checked, but %d were excused", r[judged], r[excused])
	}
}

// cluster is several nodes with the same devices.
type cluster struct {
	t         *testing.T
	random    *rand.Rand
	violation func(format string, arguments ...any)
	log       *slog.Logger
	api       *memoryAPI
	nodes     []*memoryNode
	devices   []memoryDevice
	admitting sync.WaitGroup
	late      sync.WaitGroup
	pods      int

	configuration *v0.Configuration
	acts          []act
	stalls        bool                // of kubelets
	histories     map[string]*history // by Instance
	edited        atomic.Bool         // a user has changed or removed an owner
}

// schedule runs one random schedule.
func schedule(t *testing.T, seed uint64, total reached, log *slog.Logger) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, seed, total, log)
		for i := range 2 + c.random.IntN(2) {
			c.addNode(fmt.Sprint("node-", i))
		}
		time.Sleep(time.Second)
		for range steps {
			c.step()
			time.Sleep(c.upTo(c.maxPause()))
			synctest.Wait()
			c.check()
			if t.Failed() {
				break
			}
		}
		c.drain()
		for _, n := range c.nodes {
			n.end()
		}
		c.late.Wait()
	})
}

// upTo returns a random duration below a limit.
func (c *cluster) upTo(limit time.Duration) time.Duration {
	return time.Duration(c.random.Int64N(int64(limit)))
}

// newCluster returns a cluster without nodes.
func newCluster(t *testing.T, seed uint64, total reached, log *slog.Logger) *cluster {
	report := func(format string, arguments ...any) {
		t.Errorf("violation: "+format, arguments...)
		log.Error("Violation", "what", fmt.Sprintf(format, arguments...))
	}
	c := &cluster{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), violation: report, log: log, api: newMemoryAPI(report),
		histories: map[string]*history{},
	}
	c.api.conflict, c.api.reached = c.checkConflict, total
	c.createDevices()
	c.chooseActs()
	return c
}

// maxPause returns the bound of a random pause: much happens within milliseconds, or
// after some seconds.
func (c *cluster) maxPause() time.Duration {
	return []time.Duration{time.Millisecond, 100 * time.Millisecond, 3 * time.Second}[c.random.IntN(3)]
}

func newMemoryConfiguration(capacity int32) *v0.Configuration {
	return &v0.Configuration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: group, UID: group}, Spec: v0.ConfigurationSpec{Capacity: capacity},
	}
}

func (c *cluster) addNode(name string) {
	n := &memoryNode{
		c: c, name: name, kubelet: newMemoryKubelet(name, c.api), touched: make(chan struct{}, 1),
		sees: map[string]streams.Known{}, sawAt: map[string]time.Time{},
		link: &memoryLink{node: name, api: c.api, running: &c.late, seed: c.random.Uint64(), sent: map[string]uint64{}},
	}
	c.nodes = append(c.nodes, n)
	for _, d := range c.devices {
		if d.reaches(n) {
			n.see(d, true, true)
		}
	}
	n.start()
}
