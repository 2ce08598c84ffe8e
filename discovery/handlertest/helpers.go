package handlertest

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Details are discoveryDetails, and parts of the error of their validator in their order, separated
// by " … ". Those that are valid have no error.
type Details [2]string

// Validate checks what a validator of discoveryDetails says, each in a subtest. No error may have
// the word secret, which stands for a password.
func Validate(t *testing.T, validate func(text string) error, cases map[string]Details) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { CheckError(t, validate(tc[0]), tc[1]) })
	}
}

// CheckError checks that an error is as [Details] say.
func CheckError(t testing.TB, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && err == nil:
		t.Errorf("accepted, want an error with %q", want)
	case err != nil:
		rest := err.Error()
		for part := range strings.SplitSeq(want, " … ") {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Fatalf("got %q, want it to contain %q", err, part)
			}
			rest = after
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error has a secret: %v", err)
		}
	}
}

// Listen calls serve with each connection to an address, such as 127.0.0.1:0, and returns the
// address with its port. A connection is closed when serve returns, and when the test ends.
func Listen(t testing.TB, address string, serve func(connection net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer connection.Close()
				defer context.AfterFunc(ctx, func() { connection.Close() })()
				serve(connection)
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		listener.Close()
		group.Wait()
	})
	return listener.Addr().String()
}

// Await waits for a condition.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("timed out: %s", what)
		}
	}
}
