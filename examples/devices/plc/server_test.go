package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gopcua/opcua"
	"github.com/gopcua/opcua/ua"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	m.Run()
}

// start runs a PLC until the test ends, and returns its endpoint.
func start(t *testing.T, arguments ...string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := "opc.tcp://" + listener.Addr().String()
	listener.Close()
	o, err := parse(append([]string{"--endpoint=" + endpoint}, arguments...), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for limit := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if connection, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "opc.tcp://")); err == nil {
			connection.Close()
			return endpoint
		}
		if time.Now().After(limit) {
			t.Fatal("the PLC does not listen")
		}
	}
}

func TestServer(t *testing.T) {
	endpoint := start(t, "--name=Oven 1", "--setpoint=150")
	servers, err := opcua.FindServers(t.Context(), endpoint)
	if err != nil || len(servers) != 1 {
		t.Fatalf("%d servers, %v", len(servers), err)
	}
	if s := servers[0]; s.ApplicationName.Text != "Oven 1" || s.ApplicationURI != "urn:akri:plc:Oven%201" || s.DiscoveryURLs[0] != endpoint {
		t.Errorf("the server is %+v", s)
	}

	client, err := opcua.NewClient(endpoint, opcua.SecurityMode(ua.MessageSecurityModeNone))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer client.Close(t.Context())
	read := func(name string) any {
		t.Helper()
		value, err := client.Node(ua.NewStringNodeID(1, name)).Value(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return value.Value()
	}
	if v, ok := read("temperature").(float64); !ok || v < 19 || v > 150 {
		t.Errorf("the temperature is %v", read("temperature"))
	}
	if v, ok := read("pieces").(int64); !ok || v != 0 {
		t.Errorf("the pieces are %v", read("pieces"))
	}
	write := func(name string, value any) ua.StatusCode {
		t.Helper()
		answer, err := client.Write(t.Context(), &ua.WriteRequest{NodesToWrite: []*ua.WriteValue{{
			NodeID: ua.NewStringNodeID(1, name), AttributeID: ua.AttributeIDValue,
			Value: &ua.DataValue{EncodingMask: ua.DataValueValue, Value: ua.MustVariant(value)},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Results[0]
	}
	for name, tc := range map[string]struct {
		variable string
		value    any
		want     ua.StatusCode
	}{
		"a setpoint":            {"setpoint", 99.5, ua.StatusOK},
		"a setpoint too high":   {"setpoint", 9999.0, ua.StatusBadOutOfRange},
		"text":                  {"setpoint", "hot", ua.StatusBadTypeMismatch},
		"a temperature":         {"temperature", 1.0, ua.StatusBadNotWritable},
		"something that is not": {"volume", 1.0, ua.StatusBadNodeIDUnknown},
	} {
		if got := write(tc.variable, tc.value); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
	if got := fmt.Sprint(read("setpoint")); got != "99.5" {
		t.Errorf("the setpoint is %s", got)
	}
}
