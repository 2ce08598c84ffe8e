package handlertest

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/monitor"
)

// TestOpen follows the lists of a call, and the error of one that fails.
func TestOpen(t *testing.T) {
	l, registry := newList("b", "a"), prometheus.NewRegistry()
	good := discovery.Request{Details: "good", Properties: map[string][]byte{"KEY": []byte("value")}}
	call := Open(t, correct(l), good)
	if got := IDs(call.Next()); len(got) != 2 || got[0] != "a" {
		t.Errorf("the first list is %q", got)
	}
	call.Quiet()
	l.set("c")
	call.UntilIDs("c")
	broken := errors.New("the bus is off")
	failing := function(func(context.Context, discovery.Request, sendFunc) error { return broken })
	if err := Open(t, failing, good).Err(); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	monitor.New(registry).Failed("timeout")
	if got := Failures(t, registry); got["timeout"] != 1 {
		t.Errorf("the failures are %v", got)
	}
}

func TestListen(t *testing.T) {
	address := Listen(t, "127.0.0.1:0", func(connection net.Conn) { _, _ = io.WriteString(connection, "hello") })
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if text, err := io.ReadAll(connection); string(text) != "hello" {
		t.Errorf("got %q, %v", text, err)
	}
	Await(t, "nothing", func() bool { return true })
}

func TestValidate(t *testing.T) {
	refuse := func(text string) error {
		if text == "" {
			return nil
		}
		return errors.New("text: not empty; write nothing")
	}
	Validate(t, refuse, map[string]Details{"valid": {"", ""}, "refused": {"a", "text: … write nothing"}})
}
