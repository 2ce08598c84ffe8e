package handlertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/conformance"
)

// Case is what a handler is tested with.
type Case = conformance.Case

// The rules of [Run] that can only be checked in the handler's process.
const (
	returns         = "Discover returns"
	sendsOneAtATime = "sends one list at a time"
	noGoroutines    = "no goroutine is left"
)

// name is the name under which Run serves handlers.
const name = "handlertest"

// Run tests a handler. Each rule of the contract is a subtest.
func Run(t *testing.T, handler discovery.Handler, what Case) {
	t.Helper()
	report(t, check(t, handler, what))
}

// RunEndpoint tests a running handler, whose endpoint is the path of a Unix socket or
// HOST:PORT. Each rule of the contract is a subtest.
func RunEndpoint(t *testing.T, endpoint string, what Case) {
	t.Helper()
	report(t, conformance.Check(t.Context(), endpoint, what))
}

// RunProgram tests a program. start receives the directory of the agent's socket, which
// the program must use as DISCOVERY_HANDLERS_DIRECTORY, and starts it. Each rule of the
// contract is a subtest, including those of the registration.
func RunProgram(t *testing.T, start func(dir string), what Case) {
	t.Helper()
	dir := shortDir(t)
	agent, err := conformance.ListenAgent(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	start(dir)
	report(t, agent.Check(t.Context(), "", what))
}

func report(t *testing.T, results []conformance.Result) {
	t.Helper()
	for _, result := range results {
		t.Run(result.Rule, func(t *testing.T) {
			switch {
			case result.Err != nil:
				t.Error(result.Err)
			case result.Skipped != "":
				t.Skip(result.Skipped)
			}
		})
	}
}

// shortDir returns a directory whose path leaves room for the names of sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "akri-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// check serves a handler to an agent, and returns the results of all rules.
func check(t *testing.T, handler discovery.Handler, what Case) []conformance.Result {
	t.Helper()
	before := goleak.IgnoreCurrent()
	if what.Patience == 0 {
		what.Patience = defaultPatience
	}
	dir := shortDir(t)
	agent, err := conformance.ListenAgent(dir)
	if err != nil {
		t.Fatal(err)
	}
	observed := &observer{handler: handler}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		log := slog.New(slog.DiscardHandler)
		ended <- discovery.Serve(ctx, name, observed, discovery.Options{Dir: dir, Logger: log})
	}()
	results := agent.Check(ctx, name, what)
	returned := observed.idle(what.Patience)
	results = append(results,
		conformance.Result{Rule: returns, Err: returned},
		conformance.Result{Rule: sendsOneAtATime, Err: observed.misuse()})
	cancel()
	agent.Close()
	if returned != nil {
		return append(results, conformance.Result{Rule: noGoroutines, Skipped: "Discover has not returned"})
	}
	select {
	case err = <-ended:
	case <-time.After(what.Patience):
		err = fmt.Errorf("the handler has not stopped within %v", what.Patience)
	}
	return append(results, conformance.Result{Rule: noGoroutines, Err: errors.Join(err, goleak.Find(before))})
}

// defaultPatience is the default of Case.Patience.
const defaultPatience = 10 * time.Second
