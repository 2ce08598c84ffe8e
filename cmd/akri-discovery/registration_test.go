package main

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"akri.sh/akri/discovery/conformance"
)

// TestShared checks that handlers say whether several nodes see their devices.
func TestShared(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments []string
		want      bool
	}{
		"udev":                             {[]string{"udev"}, false},
		"onvif":                            {[]string{"onvif"}, true},
		"onvif on a network of each node":  {[]string{"onvif", "--shared=false"}, false},
		"opcua":                            {[]string{"opcua"}, true},
		"opcua on a network of each node":  {[]string{"opcua", "--shared=false"}, false},
		"mqtt":                             {[]string{"mqtt"}, true},
		"mqtt with a broker on each node":  {[]string{"mqtt", "--shared=false"}, false},
		"mdns":                             {[]string{"mdns"}, true},
		"mdns on a network of each node":   {[]string{"mdns", "--shared=false"}, false},
		"http":                             {[]string{"http"}, true},
		"http on a network of each node":   {[]string{"http", "--shared=false"}, false},
		"debugEcho with devices of a node": {[]string{"debug-echo", "--shared=false"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "akri") // the path of a socket is short
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			agent, err := conformance.ListenAgent(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer agent.Close()
			ctx, cancel := context.WithCancel(t.Context())
			root := newRoot(func(string) string { return "" })
			root.SetArgs(append(tc.arguments, "--discovery-handlers-dir="+dir, "--log-level=error"))
			root.SetErr(io.Discard)
			ended := make(chan error, 1)
			go func() { ended <- root.ExecuteContext(ctx) }()
			registration, err := agent.Await(ctx, "", time.Minute)
			cancel()
			if ended := <-ended; err != nil || ended != nil {
				t.Fatalf("no registration: %v; the handler ended with %v", err, ended)
			}
			if registration.GetShared() != tc.want {
				t.Errorf("%q registered with shared=%t", tc.arguments, registration.GetShared())
			}
		})
	}
}
