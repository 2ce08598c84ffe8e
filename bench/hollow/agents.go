package hollow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"akri.sh/akri/agent"
)

// Command is a request to the process. It answers with a [Report].
type Command struct {
	// Start is the number of agents to start, on the nodes whose numbers begin with
	// First. The report follows when all of them have synced.
	First, Start int
	// Collect collects garbage and returns free memory to the operating system
	// before the report.
	Collect bool
}

// Report describes the process after a command.
type Report struct {
	// Agents is the number of agents that were started.
	Agents int
	// Received and Sent are the bytes on all connections to the API server, including
	// TLS.
	Received, Sent int64
	// Warnings counts the lines of level Warn and above in the agents' logs, by
	// message.
	Warnings map[string]int
	// Error is why the command failed; empty if it did not.
	Error string
}

// agents are the running agents.
type agents struct {
	config         *rest.Config
	dir            string
	group          *errgroup.Group
	count          int
	received, sent atomic.Int64
	warnings       warnings
}

// Serve executes commands until in ends or ctx is done, then stops all agents.
// Kubeconfig is the file for the API server, dir the directory of all nodes.
func Serve(ctx context.Context, kubeconfig, dir string, in io.Reader, out io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	a := &agents{config: config, dir: dir, group: group}
	klog.SetSlogLogger(slog.New(&a.warnings))
	commands, reports := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var command Command
		err := commands.Decode(&command)
		if err == nil {
			err = reports.Encode(a.do(ctx, command))
		} else if !errors.Is(err, io.EOF) {
			err = fmt.Errorf("read a command: %w", err)
		}
		if err != nil {
			cancel()
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(err, group.Wait())
		}
	}
}

func (a *agents) do(ctx context.Context, command Command) Report {
	err := a.start(ctx, command.First, command.Start)
	if command.Collect {
		debug.FreeOSMemory()
	}
	report := Report{Agents: a.count, Received: a.received.Load(), Sent: a.sent.Load(), Warnings: a.warnings.counts()}
	if err != nil {
		report.Error = err.Error()
	}
	return report
}

// start starts agents and waits until they have synced.
func (a *agents) start(ctx context.Context, first, count int) error {
	const parallel = 50 // TLS handshakes
	starting := errgroup.Group{}
	starting.SetLimit(parallel)
	a.count += count
	for i := range count {
		node := Node{Dir: a.dir, Number: first + i}
		starting.Go(func() error { return a.startOne(ctx, node) })
	}
	return starting.Wait()
}

func (a *agents) startOne(ctx context.Context, node Node) error {
	if err := os.MkdirAll(node.HandlersDir(), 0o700); err != nil {
		return fmt.Errorf("start the agent of %s: %w", node.Name(), err)
	}
	config := rest.CopyConfig(a.config)
	config.QPS, config.UserAgent, config.Dial = -1, node.UserAgent(), a.dial()
	a.group.Go(func() error {
		return agent.Run(ctx, agent.Options{
			NodeName: node.Name(), HandlersDir: node.HandlersDir(), KubeletDir: node.KubeletDir(), ProbeAddress: node.ProbeAddress(),
			Config: config, Logger: slog.New(&a.warnings),
		})
	})
	return awaitReady(ctx, "http://"+node.ProbeAddress()+"/readyz")
}

// awaitReady polls an agent until it is ready.
func awaitReady(ctx context.Context, url string) error {
	const timeout = 2 * time.Minute
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %v", timeout))
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if response, err := client.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("an agent did not become ready: %w", context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}
