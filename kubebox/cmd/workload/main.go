// Command workload stands in for any workload in tests and demos. It prints its
// environment to the pod's log, and serves it over HTTP until it receives SIGTERM.
//
// The ports are its arguments, or else $PORTS, separated by commas, or else 6052.
// With the argument "end" instead of ports, it exits after printing.
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
