package e2e_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

const (
	// maxKillDelay bounds the time between an action and the kill after it.
	maxKillDelay = 500 * time.Millisecond
	// maxRecovery bounds how long the next controller may take to converge.
	maxRecovery = 60 * time.Second
	// stableFor is how long the final state must persist.
	stableFor = 3 * time.Second
)

// killRun is a number of kills whose actions and times a seed determines.
type killRun struct {
	seed  uint64
	kills int           // at least
	until time.Duration // and at least as long
}

// killRuns returns fixed runs: few, or more with AKRI_FULL. With AKRI_SOAK, it
// returns one run of that duration with the seed AKRI_SEED.
func killRuns(t *testing.T) []killRun {
	t.Helper()
	if length, seed := clustertest.Soak(t, 0); length > 0 {
		return []killRun{{seed: seed, until: length}}
	}
	kills := 2
	if os.Getenv(clustertest.FullVariable) != "" {
		kills = 20
	}
	return []killRun{{seed: 1, kills: kills}, {seed: 2, kills: kills}, {seed: 3, kills: kills}}
}

// The controller is killed at random points after Instances were created or
// deleted, or templates were edited. The next controller must converge: each
// object exists once, is up to date, and is owned by its Instance.
func TestKilledController(t *testing.T) {
	t.Parallel()
	runs := killRuns(t)
	// The Deployment controller is left out: only the controller under test writes.
	c := clustertest.Start(t, cluster.Config{
		Controllers: []string{"serviceaccount-controller", "garbage-collector-controller", "namespace-controller"},
	})
	programs, err := akri.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if err := akri.InstallCRDs(t.Context(), c, programs); err != nil {
		t.Fatal(err)
	}
	// A running garbage collector takes up to half a minute to notice new kinds.
	if err := c.Do(t.Context(), cluster.Restart, "kube-controller-manager"); err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		t.Run(fmt.Sprintf("seed %d", run.seed), func(t *testing.T) {
			w := &world{Cluster: c, t: t, namespace: fmt.Sprintf("kill-%d", run.seed)}
			w.kubectl("create", "namespace", w.namespace)
			m := &killModel{world: w, random: rand.New(rand.NewPCG(run.seed, 0)), value: "1"}
			m.run(run, programs)
		})
	}
}

// run kills the controller again and again.
func (m *killModel) run(run killRun, programs akri.Programs) {
	t := m.t
	t.Helper()
	controller := startController(t, m.Cluster, programs)
	m.configure()
	m.create(maxKillBatch)
	if complaint := m.awaitConverged(); complaint != "" {
		t.Fatalf("before the first kill: %s", complaint)
	}
	var slowest time.Duration
	began := time.Now()
	for kill := 0; kill < run.kills || time.Since(began) < run.until; kill++ {
		action := m.act()
		delay := time.Duration(m.random.Int64N(int64(maxKillDelay)))
		time.Sleep(delay) // kill at a random time
		controller.kill()
		killed := time.Now()
		controller = startController(t, m.Cluster, programs)
		complaint := m.awaitConverged()
		took := time.Since(killed)
		slowest = max(slowest, took)
		t.Logf("kill %d: %s, %v later; converged after %v", kill+1, action, delay.Round(time.Millisecond), took.Round(time.Millisecond))
		if complaint != "" {
			t.Fatalf("violation: seed %d, kill %d (%s, %v later): not converged after %v: %s",
				run.seed, kill+1, action, delay, maxRecovery, complaint)
		}
	}
	for converged := time.Now(); time.Since(converged) < stableFor; {
		if complaint := m.check(); complaint != "" {
			t.Fatalf("violation: seed %d: after the last kill, the converged state did not last: %s", run.seed, complaint)
		}
	}
	t.Logf("slowest recovery: %v", slowest.Round(time.Millisecond))
	controller.kill() // the next run has its own
}

// controllerProcess is an akri-controller that runs as a process on this machine.
type controllerProcess struct {
	t       *testing.T
	command *exec.Cmd
	killed  bool
}

// startController runs the controller against the cluster. If it is still running at
// the end of the test, it is killed.
func startController(t *testing.T, c *cluster.Cluster, programs akri.Programs) *controllerProcess {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(t.ArtifactDir(), "akri-controller.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the process has its own descriptor
	command := exec.Command(filepath.Join(programs.Dir, "akri-controller"),
		"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--node-grace=0") // the cluster has no nodes
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the test
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p := &controllerProcess{t: t, command: command}
	t.Cleanup(p.kill)
	return p
}

// kill sends SIGKILL and waits until the process has exited. It fails the test if
// the process exited by itself.
func (p *controllerProcess) kill() {
	p.t.Helper()
	if p.killed {
		return
	}
	p.killed = true
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
	err := p.command.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if status := exit.Sys().(syscall.WaitStatus); status.Signaled() && status.Signal() == syscall.SIGKILL {
			return
		}
	}
	p.t.Error(fmt.Errorf("the controller exited by itself: %w", err))
}
