package kubelet

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/internal/fulltest"
	"akri.sh/akri/internal/kubelettest"
)

// kubeletProcess is set in the process that only runs a kubelet.
const kubeletProcess = "AKRI_TEST_KUBELET_PROCESS"

// TestKubeletProcess runs a kubelet for another process until its input ends.
func TestKubeletProcess(t *testing.T) {
	if os.Getenv(kubeletProcess) == "" {
		return
	}
	k := kubelettest.Start(t, kubelettest.Options{})
	fmt.Println("dir=" + k.Dir())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// TestMemory checks what a resource costs: an agent with 50 devices has 20 MB. The
// kubelet runs in another process, so that its half of the connections does not count.
// The measured cost is 47 KB. The stacks of six goroutines account for two thirds of it;
// four of these belong to gRPC. One server for all sockets would save 3 KB; smaller
// buffers would save nothing.
func TestMemory(t *testing.T) {
	fulltest.Only(t)
	const (
		resources = 200
		maxBytes  = 56 << 10
	)
	child := exec.Command(os.Args[0], "-test.run=^TestKubeletProcess$")
	child.Env = append(os.Environ(), kubeletProcess+"=1")
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = child.Wait()
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(strings.TrimPrefix(line, "dir="))

	log := slog.New(slog.DiscardHandler)
	r := NewRegistrar(dir, log)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	connected := make(chan struct{}, 2*resources)
	serve := func(n int) {
		for range n {
			plugin := Plugin{
				Resource: fmt.Sprintf("akri.sh/cam-%d", len(connected)), Server: announcing{connected: connected}, Registrar: r, Log: log,
			}
			running.Go(func() { plugin.Run(ctx) })
			want := len(connected) + 1
			for start := time.Now(); len(connected) < want; time.Sleep(time.Millisecond) {
				if time.Since(start) > 30*time.Second {
					t.Fatal("the kubelet does not connect")
				}
			}
		}
	}
	serve(10)
	before := inUse()
	serve(resources)
	each := (inUse() - before) / resources
	t.Logf("%d bytes per resource, %d goroutines", each, runtime.NumGoroutine()/(resources+10))
	if each > maxBytes && !raceDetector { // the race detector enlarges the stacks
		t.Errorf("%d bytes per resource, more than %d", each, maxBytes)
	}
}

// inUse returns the bytes of the heap and of the stacks that are in use.
func inUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// announcing reports when its list is requested.
type announcing struct {
	oneDevice
	connected chan<- struct{}
}

func (a announcing) ListAndWatch(empty *deviceplugin.Empty, stream deviceplugin.DevicePlugin_ListAndWatchServer) error {
	a.connected <- struct{}{}
	return a.oneDevice.ListAndWatch(empty, stream)
}
