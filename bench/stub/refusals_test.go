package stub

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/discovery"
)

// answering is a client of a plugin that gives so many responses to Allocate, or
// never answers.
type answering struct {
	deviceplugin.DevicePluginClient

	responses int
	silent    bool
}

func (a answering) Allocate(
	ctx context.Context, _ *deviceplugin.AllocateRequest, _ ...grpc.CallOption,
) (*deviceplugin.AllocateResponse, error) {
	if a.silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &deviceplugin.AllocateResponse{ContainerResponses: make([]*deviceplugin.ContainerAllocateResponse, a.responses)}, nil
}

func TestAllocateRefuses(t *testing.T) {
	cases := map[string]struct {
		name   string
		client answering
		want   string // an error; empty: allocated
		took   time.Duration
	}{
		"one response":       {"r", answering{responses: 1}, "", 0},
		"no plugin":          {"other", answering{responses: 1}, "allocate other: no plugin offers the resource", 0},
		"no response":        {"r", answering{}, "allocate a of r: got 0 responses, want 1", 0},
		"two responses":      {"r", answering{responses: 2}, "allocate a of r: got 2 responses, want 1", 0},
		"no answer for ever": {"r", answering{silent: true}, "allocate a of r: context deadline exceeded", 30 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				resource, began := &Resource{client: c.client}, time.Now()
				kubelet := &Kubelet{resources: map[string]*Resource{"r": resource}}
				err := kubelet.Allocate(t.Context(), c.name, "a")
				if got := fmt.Sprint(err); c.want != "" && got != c.want || c.want == "" && err != nil {
					t.Errorf("got the error %q, want %q", got, c.want)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if kept := len(resource.allocated) == 1; kept != (c.want == "") {
					t.Errorf("the container keeps %v", resource.allocated)
				}
			})
		})
	}
}

// Register waits for both sockets, and not for ever.
func TestRegisterTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, began := t.TempDir(), time.Now()
		err := NewHandler("local", dir, false).Register(t.Context(), dir)
		want := fmt.Sprintf("register the handler: wait for %s: context deadline exceeded", filepath.Join(dir, "local.sock"))
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if took := time.Since(began); took != callTimeout {
			t.Errorf("took %v, want %v", took, callTimeout)
		}
	})
}

func TestNoteKeepsFewErrors(t *testing.T) {
	kubelets, err := NewKubelets()
	if err != nil {
		t.Fatal(err)
	}
	kubelets.note(nil)
	for i := range 7 {
		kubelets.note(fmt.Errorf("failure %d", i))
	}
	kubelets.cancel()
	if got, want := fmt.Sprint(kubelets.Close()), "failure 0\nfailure 1\nfailure 2\nfailure 3\nfailure 4"; got != want {
		t.Errorf("got the errors %q, want the first five", got)
	}
	kubelets.errs = nil
	kubelets.note(errors.New("the connection is closed")) // by Close
	if kubelets.errs != nil {
		t.Errorf("an error after Close is kept: %v", kubelets.errs)
	}
}

func TestDevices(t *testing.T) {
	devices := Devices(3)
	if len(devices) != 3 || devices[2].ID != "bench-0002" || devices[2].Properties["BENCH_DEVICE"] != "/dev/bench2" {
		t.Errorf("got %+v", devices)
	}
}

// A handler sends its devices at once and after each change, and counts its streams.
func TestDiscover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := NewHandler("local", "", false)
		handler.Set(Devices(2))
		ctx, cancel := context.WithCancel(t.Context())
		var sent []string
		done := make(chan error)
		go func() {
			done <- handler.Discover(ctx, discovery.Request{}, func(devices []discovery.Device) error {
				sent = append(sent, fmt.Sprint(len(devices)))
				return nil
			})
		}()
		synctest.Wait()
		handler.Set(Devices(5))
		synctest.Wait()
		if got := strings.Join(sent, " "); got != "2 5" || handler.Streams() != 1 {
			t.Errorf("sent lists of %s devices on %d streams, want 2 5 on one", got, handler.Streams())
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || handler.Streams() != 0 {
			t.Errorf("at the end: %v, %d streams", err, handler.Streams())
		}
	})
}

// The kubelet gives up on a plugin that never listens.
func TestIntroduceTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		kubelet := &Kubelet{resources: map[string]*Resource{}}
		var running sync.WaitGroup
		socket := filepath.Join(t.TempDir(), "plugin.sock")
		err := kubelet.connect(t.Context(), socket, &running)
		if want := "register the plugin at " + socket + ": "; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if took := time.Since(began); took != callTimeout || len(kubelet.resources) != 0 {
			t.Errorf("took %v with %d resources, want %v with none", took, len(kubelet.resources), callTimeout)
		}
		running.Wait()
	})
}
