package main

import (
	"context"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gopcua/opcua/server"
	"github.com/gopcua/opcua/ua"
	"github.com/prometheus/client_golang/prometheus"

	"akri.sh/akri/internal/fulltest"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // the server logs there
	m.Run()
}

// serve starts a server with a node, and returns its URL.
func serve(t *testing.T, port int, value func() any) (stop func()) {
	t.Helper()
	s := server.New(server.EndPoint("127.0.0.1", port),
		server.EnableSecurity("None", ua.MessageSecurityModeNone), server.EnableAuthMode(ua.UserTokenTypeAnonymous))
	space := server.NewNodeNameSpace(s, "test")
	space.AddNewVariableStringNode("v", func() *ua.DataValue { return server.DataValueFromValue(value()) })
	ctx, cancel := context.WithCancel(context.Background())
	if err := s.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return func() { cancel(); _ = s.Close() }
}

func TestBroker(t *testing.T) {
	fulltest.Only(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	stop := serve(t, port, func() any { return 42.5 })

	environment := map[string]string{
		"OPCUA_DISCOVERY_URL": "opc.tcp://" + listener.Addr().String(), "OPCUA_APPLICATION_NAME": "Oven", "OPCUA_NODE_ID": "ns=1;s=v",
	}
	o, err := parse([]string{"--interval=100ms", "--metric=temperature"}, func(name string) string { return environment[name] }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	g := newGauge(o.metric, o.server, o.node.String())
	registry := prometheus.NewRegistry()
	registry.MustRegister(g)
	pages := httptest.NewServer(routes(g, registry))
	defer pages.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); poll(ctx, o, g) }()
	defer func() { cancel(); <-ended }()

	get := func(path string) (int, string) {
		answer, err := http.Get(pages.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body)
	}
	await := func(want string, status int) string {
		t.Helper()
		for limit := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			_, metrics := get("/metrics")
			if ready, _ := get("/readyz"); strings.Contains(metrics, want) && ready == status {
				return metrics
			}
			if time.Now().After(limit) {
				t.Fatalf("the metrics do not contain %s:\n%s", want, metrics)
			}
		}
	}
	await(`temperature{node="ns=1;s=v",server="Oven"} 42.5`, http.StatusOK)
	await(`opcua_up{node="ns=1;s=v",server="Oven"} 1`, http.StatusOK)
	stop()
	metrics := await(`opcua_up{node="ns=1;s=v",server="Oven"} 0`, http.StatusServiceUnavailable)
	if strings.Contains(metrics, "temperature{") {
		t.Errorf("the value is stale:\n%s", metrics)
	}
	if status, _ := get("/healthz"); status != http.StatusOK {
		t.Errorf("/healthz: %d", status)
	}
	defer serve(t, port, func() any { return int32(-7) })()
	await(`temperature{node="ns=1;s=v",server="Oven"} -7`, http.StatusOK)
}

func TestNumber(t *testing.T) {
	for _, tc := range []struct {
		value any
		want  float64
	}{
		{true, 1}, {false, 0}, {int8(-3), -3}, {int64(-9), -9}, {uint8(3), 3}, {uint64(9), 9}, {float32(1.5), 1.5}, {2.5, 2.5},
		{"text", math.NaN()}, {[]float64{1}, math.NaN()}, {time.Now(), math.NaN()},
	} {
		got, err := number(ua.MustVariant(tc.value))
		if (err != nil) != math.IsNaN(tc.want) || err == nil && got != tc.want {
			t.Errorf("%T %v: got %v, %v", tc.value, tc.value, got, err)
		}
	}
	if _, err := number(nil); err == nil {
		t.Error("no value is not a number")
	}
}
