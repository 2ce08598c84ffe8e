package slots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"akri.sh/akri/kubebox/clustertest"
)

// Devices that come and go every few milliseconds, while Pods come and go, do not crash
// the kubelet. It would crash if an id left the list while it is being allocated.
func TestFlappingDevices(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	length, _ := clustertest.Soak(t, 10*time.Second)
	instances := w.configuration("flap", 5, "flap0", "flap1")
	// The kubelet ignores requests for resources that it does not know yet.
	w.allocatable(node1, instances["flap0"], 5)
	w.allocatable(node1, "flap", 2)
	available := func(w *world, state string) {
		file := filepath.Join(w.AkriDir(node1), "debug-echo", "debug-echo-availability.txt")
		if err := os.WriteFile(file, []byte(state+"\n"), 0o644); err != nil {
			w.t.Error(err)
		}
	}
	kubelet, done := w.pidOf("node1/kubelet"), make(chan struct{})
	still := w.undo(func(after *world) {
		<-done
		available(after, "ONLINE")
	})
	stop := w.monitorDoubles()
	changes := 0
	go func() {
		defer close(done)
		for began := time.Now(); time.Since(began) < length && w.ctx.Err() == nil; changes++ {
			available(w, []string{"OFFLINE", "ONLINE"}[changes%2])
			time.Sleep(time.Duration(1+changes%40) * time.Millisecond) // the rate is part of the test
		}
	}()
	ran, failed := 0, 0
	for i, flapping := 0, true; flapping; i++ {
		resource := levels[i%len(levels)].resource("flap", instances["flap0"])
		name := fmt.Sprintf("flap-%d", i)
		// Bound here: the scheduler would wait for the node's status.
		w.podWith(name, strings.Replace(podSpec("", nil, container{name: "app", resources: limit(resource, 1)}), "{", "{nodeName: node1, ", 1))
		w.eventually(name+" runs or fails", func() string {
			if len(w.of(name)) > 0 {
				ran++
				return ""
			}
			if w.get("Pod", name).Status.Phase == "Failed" {
				failed++
				return ""
			}
			return w.describe(name)
		})
		w.deleteWith("Pod", name, "gracePeriodSeconds=0")
		select {
		case <-done:
			flapping = false
		default:
		}
	}
	still()
	stop()
	t.Logf("%d changes, %d pods ran, %d were rejected", changes, ran, failed)
	w.healthy()
	if now := w.pidOf("node1/kubelet"); now != kubelet {
		t.Errorf("the kubelet was process %d and is process %d", kubelet, now)
	}
	instances = w.awaitInstances("flap", []string{"flap0", "flap1"}, node1, node2)
	w.eventually("all slots are free", func() string {
		if owners := w.allUsage(instances); len(owners) > 0 {
			return fmt.Sprint(owners)
		}
		return ""
	})
	w.allocatable(node1, instances["flap0"], 5)
	w.started("after", node1, instances["flap0"])
	w.consistent()
}

// All of a Configuration's many devices are soon Instances, and in the status of the node.
func TestManyDevices(t *testing.T) {
	clustertest.Full(t)
	const many = 50
	w := newWorld(t)
	devices := make([]string, many)
	for i := range devices {
		devices[i] = fmt.Sprintf("many%d", i)
	}
	began := time.Now()
	w.describeDevices("many", 1, devices...)
	found := w.awaitInstances("many", devices, node1, node2)
	instances := time.Since(began)
	w.eventually("the devices are allocatable", func() string {
		allocatable := w.get("Node", node1).Status.Allocatable
		if have := allocatable["akri.sh/many"]; have != fmt.Sprint(many) {
			return fmt.Sprintf("%q of the Configuration", have)
		}
		for _, name := range found {
			if have := allocatable["akri.sh/"+name]; have != "1" {
				return fmt.Sprintf("%q of %s", have, name)
			}
		}
		return ""
	})
	t.Logf("from the Configuration until %d Instances are on both nodes: %v; in the status of a node: %v",
		many, instances.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
}

// pidOf returns the process ID of a component in its node.
func (w *world) pidOf(component string) int {
	w.t.Helper()
	components, err := w.Components(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range components {
		if c.Name == component {
			return c.Pid
		}
	}
	w.t.Fatalf("there is no component %s", component)
	return 0
}

// While other programs exhaust the rate limit of the kubelet's Pod resources API, slots
// are freed nevertheless, and none is freed that a container has.
func TestExhaustedPodResources(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	r := w.settle("flood")
	flood := newPodResources(filepath.Join(w.KubeletDir(node1), "pod-resources", "kubelet.sock"))
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	var refused atomic.Int64
	for range 8 {
		go func() {
			for ctx.Err() == nil {
				if flood.list(ctx) == resourceExhausted {
					refused.Add(1)
				}
				time.Sleep(10 * time.Millisecond) // several times the rate limit, which is 100 per second
			}
		}()
	}
	w.eventually("control: the kubelet refuses calls", func() string {
		if refused.Load() == 0 {
			return "none was refused"
		}
		return ""
	})
	r.serves(w, "during-flood")
	r.undisturbed(w)
	t.Logf("the kubelet refused %d calls", refused.Load())
}

// podResources calls the kubelet's Pod resources API: gRPC over HTTP/2, with an empty
// message as the request.
type podResources struct{ client *http.Client }

// resourceExhausted is gRPC's status code of a call beyond the rate limit.
const resourceExhausted = "8"

func newPodResources(socket string) podResources {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	return podResources{&http.Client{Transport: &http.Transport{
		Protocols: &protocols,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}}
}

// list calls List and returns gRPC's status code, or "" if there is none.
func (p podResources) list(ctx context.Context) string {
	empty := make([]byte, 5) // not compressed, zero bytes long
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://kubelet/v1.PodResourcesLister/List", bytes.NewReader(empty))
	if err != nil {
		return ""
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	response, err := p.client.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	if code := response.Trailer.Get("Grpc-Status"); code != "" {
		return code
	}
	return response.Header.Get("Grpc-Status") // without a message, trailers are headers
}
