package main

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// settledLog returns the log of two Instances whose objects and statuses are written, and
// of requests that must not count.
func settledLog() []auditLine {
	request := func(agent, verb, resource string, device, code, done int) auditLine {
		return auditLine{
			Agent: agent, Verb: verb, Resource: resource, Name: deviceName(device), Code: code,
			Done: time.Unix(0, 0).Add(time.Duration(done) * time.Millisecond),
		}
	}
	lines := []auditLine{
		request(creatorsAgent, "create", "instances", 1, 201, 12), request(creatorsAgent, "create", "instances", 0, 201, 10),
		request(creatorsAgent, "create", "instances", 2, 409, 1),
		request(controllerName, "patch", "services", 0, 409, 900), request(controllerName, "patch", "deployments", 0, 200, 900),
		request(controllerName, "get", "instances/status", 2, 200, 900),
		request("kube-controller-manager", "create", "configmaps", 0, 201, 900),
	}
	for device := range 2 {
		for _, child := range children {
			lines = append(lines, request(controllerName, "patch", child.Resource, device, 201, 30+device))
		}
		lines = append(lines, request(controllerName, "patch", "instances/status", device, 200, 60))
	}
	return lines
}

func TestAwaitSettled(t *testing.T) {
	log, _ := logOf(settledLog()...)
	for _, c := range []struct {
		agent string
		count int
		want  string
	}{
		{controllerName, 2, "0.021 s <nil>"},
		{controllerName, 3, "0.000 s only 6 of 9 objects and 2 of 3 statuses exist: context deadline exceeded"},
		{bareAgent, 2, "0.000 s only 0 of 6 objects and 0 of 2 statuses exist: context deadline exceeded"},
	} {
		synctest.Test(t, func(t *testing.T) {
			result, err := log.awaitSettled(t.Context(), 0, c.agent, c.count)
			if got := fmt.Sprintf("%.3f s %v", result.seconds, err); got != c.want {
				t.Errorf("%s, %d Instances: got %s, want %s", c.agent, c.count, got, c.want)
			}
		})
	}
}

// The ratio is the median of the rounds' ratios, and each round must meet the limit of
// requests.
func TestSettleRows(t *testing.T) {
	bare := []settled{{seconds: 1}, {seconds: 2}, {seconds: 1}}
	rows := func(last float64, requests int) []figure {
		return settleRows(10, bare, []settled{
			{seconds: 3, requests: make([]auditLine, 40)}, {seconds: 2, requests: make([]auditLine, requests)},
			{seconds: last, requests: make([]auditLine, 40), cpu: 0.06},
		})
	}
	cases := []struct{ got, want any }{
		{rows(1.05, 40)[0].Measured, "2.00 s, 15 objects/s, ratio 1.05 (rounds [3.00 1.00 1.05])"},
		{rows(1.05, 40)[0].Bare, "1.00 s, 30 objects/s"},
		{rows(1.05, 40)[0].verdict() + rows(1.06, 40)[0].verdict(), "yesNO"},
		{rows(1, 40)[1].verdict() + rows(1, 41)[1].verdict(), "yesNO"},
		{rows(1, 40)[1].Bare, "1.333"},
		{rows(1, 40)[2].Measured, "0.06 s, 2000 us per object"},
	}
	for _, c := range cases {
		if c.got != c.want {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
}
