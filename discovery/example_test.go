package discovery_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/conformance"
)

// doors is a handler that finds the doors whose names are in discoveryDetails.
type doors struct{}

// Discover sends the full list at once. These doors never change, so that is all.
func (doors) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	names := strings.Fields(request.Details)
	if len(names) == 0 {
		return discovery.Invalid(`discoveryDetails: no door: name at least one, such as "front back"`)
	}
	var found []discovery.Device
	for _, name := range names {
		found = append(found, discovery.Device{ID: name, Properties: map[string]string{"DOOR": name}})
	}
	if err := send(found); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// A handler is one method, and Serve does the rest. Here a stand-in for the agent
// accepts the registration, and then calls the handler as agents do.
func ExampleServe() {
	dir, err := os.MkdirTemp("", "akri")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	agent, err := conformance.ListenAgent(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer agent.Close()

	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		// A handler on a node uses discovery.FromEnvironment().
		options := discovery.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)}
		if err := discovery.Serve(ctx, "doors", doors{}, options); err != nil {
			fmt.Println(err)
		}
	})
	defer serving.Wait()
	defer stop()

	for _, r := range agent.Check(ctx, "doors", conformance.Case{
		Details: "front back", MinDevices: 2, Invalid: []string{""}, Quiet: 10 * time.Millisecond, Patience: time.Minute,
	}) {
		switch {
		case r.Err != nil:
			fmt.Printf("%s: %v\n", r.Rule, r.Err)
		case r.Skipped != "":
			fmt.Printf("%s: not checked, %s\n", r.Rule, r.Skipped)
		default:
			fmt.Printf("%s: kept\n", r.Rule)
		}
	}
	// Output:
	// registers: kept
	// valid registration: kept
	// registers again: kept
	// connects: kept
	// first list: kept
	// stays open: kept
	// overlapping calls: kept
	// sends changes: not checked, the devices do not change
	// same list for each call: kept
	// independent calls: kept
	// device ids: kept
	// device properties: kept
	// mounts and device files: kept
	// cancelled calls are released: kept
	// refusal: kept
	// works after a refusal: kept
}
