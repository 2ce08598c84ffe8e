package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/internal/fulltest"
)

// A handler that reports another value with each message makes the agent write once per
// second; the last value is written in the end.
func TestWritesAreBounded(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	a.startAgent()
	send := a.startScripted("pace")
	report := func(value string) {
		send(discovery.Device{ID: "meter", Properties: map[string]string{"VALUE": value}})
	}
	report("first")
	w.awaitDevices("meter")
	before := w.instances()["meter"].Generation // counts the writes of the spec
	began := time.Now()
	for i := 0; time.Since(began) < 2500*time.Millisecond; i++ {
		report(fmt.Sprint(i))
	}
	report("last")
	w.eventually("the last value is written", func() bool { return w.instances()["meter"].Spec.BrokerProperties["VALUE"] == "last" })
	took := time.Since(began) // the agent reads what such a handler has sent with a delay
	writes := int(w.instances()["meter"].Generation - before)
	if most := int(took/time.Second) + 3; writes > most || writes < 2 {
		t.Errorf("%d writes in %s, want from 2 to %d", writes, took, most)
	}
}

// A handler that goes on like that is named.
func TestThrottledHandlerIsNamed(t *testing.T) {
	fulltest.Only(t)
	w := newWorld(t)
	a := w.node("a")
	a.startAgent()
	send := a.startScripted("pace")
	for began, i := time.Now(), 0; len(w.failures("pace")) == 0; i++ {
		if time.Since(began) > 2*time.Minute {
			t.Fatal("no failure is reported")
		}
		send(discovery.Device{ID: "meter", Properties: map[string]string{"VALUE": fmt.Sprint(i)}})
	}
	if found := w.failures("pace"); len(found) != 1 || found[0].Handler != "scripted" ||
		!strings.Contains(found[0].Message, `such as "meter" change`) {
		t.Errorf("the failures are %+v, want one of the handler scripted about its device", found)
	}
}
