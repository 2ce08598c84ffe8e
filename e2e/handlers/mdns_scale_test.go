package handlers

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/clustertest"
)

// servicesVariable is how many services TestMDNSManyServices announces, such as 1000.
const servicesVariable = "AKRI_E2E_MDNS_SERVICES"

// TestMDNSManyServices announces many services with avahi, and measures the handler.
func TestMDNSManyServices(t *testing.T) {
	clustertest.Full(t)
	count, err := strconv.Atoi(os.Getenv(servicesVariable))
	if err != nil {
		t.Skipf("set %s to a number, such as 1000", servicesVariable)
	}
	w := newWorld(t, "mdns")
	for _, node := range w.Nodes() {
		t.Logf("%s: idle, the handler has %s bytes", node, w.handlerMetric(node, "process_resident_memory_bytes"))
	}
	avahi := w.avahi()
	configuration, _, _ := strings.Cut(fmt.Sprintf(mdnsConfiguration, "_akri-d._tcp"), "  brokerSpec:")
	w.apply(configuration)
	began := time.Now()
	for i := range count {
		avahi.write(fmt.Sprintf("%d.service", i), avahiService(fmt.Sprintf("Device %04d", i), "_akri-d._tcp", 1+i, "n="+strconv.Itoa(i)))
	}
	t.Logf("avahi has its files after %v", time.Since(began))
	w.awaitMetric("akri_handler_devices", float64(count))
	t.Logf("the handlers know all services after %v", time.Since(began))
	w.eventually("Instances", func() string {
		if found := len(w.instances()); found != count {
			return fmt.Sprint(found)
		}
		return ""
	})
	t.Logf("all are Instances after %v", time.Since(began))
	for _, node := range w.Nodes() {
		t.Logf("%s: with all services, the handler has %s bytes and has used %s s of processor time",
			node, w.handlerMetric(node, "process_resident_memory_bytes"), w.handlerMetric(node, "process_cpu_seconds_total"))
	}
	before := w.deviceChanges(w.Nodes()[0])
	if !strings.Contains(before, `{change="appeared"} `+strconv.Itoa(count)) {
		t.Errorf("devices have come and gone:\n%s", before)
	}
	began = time.Now()
	for i := range count {
		avahi.remove(fmt.Sprintf("%d.service", i))
	}
	w.awaitMetric("akri_handler_devices", 0)
	t.Logf("the handlers know that all are gone %v later", time.Since(began))
}

// awaitMetric waits until the handlers of all nodes have a value of a metric.
func (w *world) awaitMetric(name string, want float64) {
	w.t.Helper()
	for _, node := range w.Nodes() {
		w.eventually(name+" of "+node, func() string {
			value, err := strconv.ParseFloat(w.handlerMetric(node, name), 64)
			if err != nil || value != want {
				return fmt.Sprintf("it is %v, want %v (%v)", value, want, err)
			}
			return ""
		})
	}
}

// handlerMetric returns the value of a metric without labels.
func (w *world) handlerMetric(node, name string) string {
	w.t.Helper()
	for line := range strings.Lines(w.handlerMetrics(node)) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			return strings.TrimSpace(value)
		}
	}
	w.t.Fatalf("%s: the handler has no metric %s", node, name)
	return ""
}
