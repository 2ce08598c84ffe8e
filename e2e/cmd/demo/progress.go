package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// heartbeat is how often a long step reports that it is still running.
const heartbeat = 10 * time.Second

// progress receives what people read while they wait.
var progress io.Writer = os.Stderr

// logf prints progress.
func logf(format string, arguments ...any) {
	fmt.Fprintf(progress, "demo: "+format+"\n", arguments...)
}

// during runs a step, and reports it when it begins and at every heartbeat.
func during(step string, run func() error) error {
	logf("%s", step)
	began := time.Now()
	ended := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() {
		ticker := time.NewTicker(heartbeat)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				logf("%s: %.0fs", step, time.Since(began).Seconds())
			}
		}
	})
	defer func() { close(ended); reporting.Wait() }()
	return run()
}
