package apitest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// StartGarbageCollector runs Kubernetes' garbage collector, the one controller of
// a kube-controller-manager, on the API server that [Start] has started. It runs until
// stop is called, at the latest until the test ends. It sees all namespaces.
func StartGarbageCollector(t testing.TB) (stop func()) {
	t.Helper()
	binary := filepath.Join(assets(t, "kube-controller-manager"), "kube-controller-manager")
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	shared.Lock()
	content := shared.environment.KubeConfig
	shared.Unlock()
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		t.Fatalf("apitest: %v", err)
	}
	var output bytes.Buffer
	command := exec.Command(binary,
		"--kubeconfig="+kubeconfig, "--controllers=garbage-collector-controller", "--leader-elect=false", "--secure-port=0")
	command.Stdout, command.Stderr = &output, &output
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		t.Fatalf("apitest: start %s: %v", binary, err)
	}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			_ = command.Process.Kill() // fails only if it has exited
			_ = command.Wait()         // reports the kill
			if t.Failed() {
				t.Logf("apitest: kube-controller-manager:\n%s", output.Bytes())
			}
		})
	}
	t.Cleanup(stop)
	return stop
}
