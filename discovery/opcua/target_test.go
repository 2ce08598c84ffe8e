package opcua

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"akri.sh/akri/discovery/handlertest"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/opcua/details"
)

// fakeTarget is a target whose answers come from a test.
type fakeTarget struct {
	*target
	search *search
}

func newFakeTarget(s *search) fakeTarget {
	return fakeTarget{&target{method: standard, candidate: candidate{text: "lds"}, servers: map[string]*server{}}, s}
}

// answers makes the target answer with servers at some hosts.
func (f fakeTarget) answers(hosts ...string) {
	f.report(hosts...)
	f.end(true)
}

func (f fakeTarget) report(hosts ...string) {
	from := origin{candidate: candidate{"opc.tcp://lds", details.URL{Host: "lds", Port: 4840}}, isOnLink: onLink()}
	for _, host := range hosts {
		f.search.report(f.target, from, application{name: host, urls: candidates([]string{"https://" + host, "opc.tcp://" + host})}, false)
	}
}

func (f fakeTarget) end(isAnswer bool) { f.search.judge(f.target, isAnswer) }

// hosts returns the hosts of the servers that it reports.
func (f fakeTarget) hosts() string {
	var hosts []string
	for _, r := range f.servers {
		hosts = append(hosts, r.id.url.Host)
	}
	slices.Sort(hosts)
	return strings.Join(hosts, " ")
}

func TestMisses(t *testing.T) {
	lds := newFakeTarget(newSearch(New(Options{}), parse(t, "opcuaDiscoveryMethod: {standard: {}}")))
	for _, step := range []struct {
		reason string
		do     func()
		want   string
	}{
		{"both are reported", func() { lds.answers("b", "a") }, "a b"},
		{"a lost answer removes nothing", func() { lds.end(false) }, "a b"},
		{"an answer without b is the second miss of b", func() { lds.answers("a") }, "a b"},
		{"the third miss in a row removes b", func() { lds.answers("a") }, "a"},
		{"a was reported last time", func() { lds.end(false); lds.end(false) }, "a"},
		{"an answer resets the misses", func() { lds.answers("a", "b") }, "a b"},
		{"not gone yet", func() { lds.end(false); lds.end(false) }, "a b"},
		{"an answer that fails adds nothing, and is a miss of all", func() { lds.report("a", "c"); lds.end(false) }, ""},
	} {
		step.do()
		if got := lds.hosts(); got != step.want {
			t.Fatalf("%s: got %q, want %q", step.reason, got, step.want)
		}
	}
	if !lds.search.servers.TryAcquire(maxServers) {
		t.Error("servers that are gone take room")
	}
}

func TestServersAreBounded(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := newSearch(New(Options{Metrics: monitor.New(registry)}), parse(t, "{opcuaDiscoveryMethod: {standard: {}}, misses: 1}"))
	var targets []fakeTarget
	count := 0
	for i := range 4 {
		targets = append(targets, newFakeTarget(s))
		var hosts []string
		for server := range maxServers / 3 {
			hosts = append(hosts, fmt.Sprintf("%d-%d", i, server))
		}
		targets[i].answers(hosts...)
		count += len(targets[i].servers)
	}
	if excess := handlertest.Failures(t, registry)[reasonTooMany]; count != maxServers || excess != maxServers/3*4-maxServers {
		t.Errorf("%d servers are remembered, want %d; %v were counted as too many", count, maxServers, excess)
	}
	targets[0].answers()
	targets[3].answers("new")
	if got := targets[3].hosts(); got != "new" {
		t.Errorf("after others have made room, the servers are %q", got)
	}
}

// TestLookupsWaitTogether checks that the look-ups that an answer causes wait for calls of
// others at the same time: one after the other, many would exceed the time of the first list.
func TestLookupsWaitTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSearch(New(Options{}), parse(t, "opcuaDiscoveryMethod: {standard: {}}"))
		lds := newFakeTarget(s)
		hosts := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"} // which the handler may not connect to
		lds.answers(hosts...)
		wait := func() {
			t.Helper()
			if err := s.calls.Acquire(t.Context(), maxRequestCalls); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range lds.servers {
			r.description.endpoints = "None/None" // known since it was permitted
		}
		wait() // for nothing
		var completed sync.WaitGroup
		completed.Go(func() { s.completeAll(t.Context(), origin{}, lds.target) })
		synctest.Wait()
		time.AfterFunc(time.Second, func() { s.calls.Release(maxRequestCalls) })
		wait() // for the look-ups, which were first
		synctest.Wait()
		var urls []string
		for _, r := range lds.servers {
			if r.published.url != "" && r.published.endpoints == "" {
				urls = append(urls, r.published.url)
			}
		}
		if len(urls) != len(hosts) {
			t.Errorf("the servers that are looked up are %q, want %d", urls, len(hosts))
		}
		s.calls.Release(maxRequestCalls)
		completed.Wait()

		wait()
		s.completeAll(t.Context(), origin{}, lds.target) // it is too early to look them up again
	})
}
