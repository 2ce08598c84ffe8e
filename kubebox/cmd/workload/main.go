// Command workload stands in for any workload in tests and demos. It prints its
// environment to the Pod's log, and serves it over HTTP until it receives SIGTERM.
//
// The ports are its arguments, or else $PORTS, separated by commas, or else 6052.
// With the argument "end" instead of ports, it exits after printing.
//
// It is also a client, to be run in a Pod by kubectl exec:
//
//	workload get 10 http://svc/   # the first line of each of ten responses
//	workload lookup svc other     # the addresses of hosts
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

const defaultPort = "6052"

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if len(os.Args) > 1 {
		if command, ok := commands[os.Args[1]]; ok {
			if err := command(ctx, os.Args[2:]); err != nil {
				log.Fatal(err)
			}
			return
		}
	}
	for _, setting := range environment() {
		fmt.Println(setting)
	}
	ports := os.Args[1:]
	if slices.Equal(ports, []string{"end"}) {
		return
	}
	if len(ports) == 0 {
		ports = strings.Split(os.Getenv("PORTS"), ",")
	}
	if ports[0] == "" {
		ports = []string{defaultPort}
	}
	for _, port := range ports {
		serve(ctx, port)
	}
	<-ctx.Done()
	fmt.Println("terminating")
}

// commands are the clients by name.
var commands = map[string]func(context.Context, []string) error{
	"get": func(ctx context.Context, args []string) error {
		if len(args) != 2 {
			return errors.New("usage: workload get COUNT URL")
		}
		return get(ctx, os.Stdout, args[0], args[1])
	},
	"lookup": func(ctx context.Context, args []string) error {
		return lookup(ctx, os.Stdout, args...)
	},
}

// environment returns the sorted environment.
func environment() []string {
	all := os.Environ()
	slices.Sort(all)
	return all
}

// serve answers requests on a port until ctx is done.
func serve(ctx context.Context, port string) {
	server := &http.Server{Addr: ":" + port, Handler: http.HandlerFunc(answer), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	go func() {
		fmt.Println("serving on port", port)
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			log.Fatal(err)
		}
	}()
}

// answer writes the host name and the environment.
func answer(w http.ResponseWriter, r *http.Request) {
	host, _ := os.Hostname()
	fmt.Fprintln(w, host)
	for _, setting := range environment() {
		fmt.Fprintln(w, setting)
	}
}
