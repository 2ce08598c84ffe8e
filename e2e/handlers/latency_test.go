package handlers

import (
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"akri.sh/akri/e2e/akri"
)

// sighting is an Instance that a watch has seen appear.
type sighting struct {
	value string // of a property
	seen  time.Time
}

// watchInstances returns the values of a property of the Instances of the test's namespace
// that appear from now on.
func (w *world) watchInstances(property string) <-chan sighting {
	w.t.Helper()
	server, client, err := akri.Connect(w.Kubeconfig())
	if err != nil {
		w.t.Fatal(err)
	}
	address := server + "/apis/akri.sh/v0/namespaces/" + w.namespace + "/instances?watch=true"
	request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, address, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		w.t.Fatalf("watch the Instances: %v, %v", response, err)
	}
	sightings, ended := make(chan sighting, 1000), make(chan struct{})
	go func() {
		defer close(ended)
		for decoder := json.NewDecoder(response.Body); ; {
			var event struct {
				Type   string       `json:"type"`
				Object instanceView `json:"object"`
			}
			if decoder.Decode(&event) != nil {
				return
			}
			if event.Type == "ADDED" {
				sightings <- sighting{event.Object.Spec.BrokerProperties[property], time.Now()}
			}
		}
	}()
	w.t.Cleanup(func() {
		response.Body.Close()
		<-ended
	})
	return sightings
}

// awaitSighting waits for the Instance with a value, and returns how long after a time it
// was seen.
func (w *world) awaitSighting(added <-chan sighting, value string, began time.Time) time.Duration {
	w.t.Helper()
	for deadline := time.After(timeout); ; {
		select {
		case s := <-added:
			if s.value == value && s.seen.After(began) { // not an earlier device of that name
				return s.seen.Sub(began)
			}
		case <-deadline:
			w.t.Fatalf("no Instance of %s was seen", value)
		}
	}
}

// logLatencies logs a summary of latencies and returns their median.
func (w *world) logLatencies(what string, latencies []time.Duration) time.Duration {
	w.t.Helper()
	slices.Sort(latencies)
	median, p95 := latencies[len(latencies)/2], latencies[len(latencies)*95/100]
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Logf("%s: p50 %v, p95 %v, max %v; load %s", what, median, p95, latencies[len(latencies)-1], load)
	return median
}

// roundsVariable is how many devices are added to measure the time until their Instances
// are visible; 10 if it is not set.
const roundsVariable = "AKRI_E2E_LATENCY_ROUNDS"

// rounds returns how many devices are added.
func (w *world) rounds() int {
	w.t.Helper()
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv(roundsVariable), "10"))
	if err != nil || rounds < 1 {
		w.t.Fatalf("%s=%q: want a number from 1", roundsVariable, os.Getenv(roundsVariable))
	}
	return rounds
}

// maxHandlerMemory is how much memory a handler may have in use, in bytes.
const maxHandlerMemory = 24 << 20

// checkMemory reads the metrics of a handler's Pods.
func (w *world) checkMemory(handler string) {
	w.t.Helper()
	pods := w.kubectl("--namespace", akri.Namespace, "get", "pods", "--selector=app.kubernetes.io/name=akri-"+handler+"-discovery",
		"--output=jsonpath={.items[*].metadata.name}")
	for pod := range strings.FieldsSeq(pods) {
		metrics, err := akri.ReadMetrics(w.ctx, w.Cluster, pod)
		if err != nil {
			w.t.Fatal(err)
		}
		_, rest, found := strings.Cut(metrics, "\nprocess_resident_memory_bytes ")
		value, _, _ := strings.Cut(rest, "\n")
		resident, err := strconv.ParseFloat(value, 64)
		if !found || err != nil {
			w.t.Fatalf("%s has no metric of its memory: %v", pod, err)
		}
		w.t.Logf("%s: %.1f MiB resident", pod, resident/(1<<20))
		if resident > maxHandlerMemory {
			w.t.Errorf("%s uses %.0f bytes, more than %d", pod, resident, maxHandlerMemory)
		}
	}
	if pods == "" {
		w.t.Errorf("the handler %s has no Pods", handler)
	}
}
