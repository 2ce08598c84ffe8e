// Command workload stands in for a broker in tests and demos: it prints its
// environment, so that a log shows what it was given, and answers HTTP requests
// with it until it is asked to end.
//
// Its ports are its arguments, else $PORTS, separated by commas, else 6052. The
// argument "end" instead of ports lets it end when it has printed.
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
	fmt.Println("asked to end")
}

func environment() []string {
	all := os.Environ()
	slices.Sort(all)
	return all
}

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

// answer lists the host, then the environment.
func answer(w http.ResponseWriter, r *http.Request) {
	host, _ := os.Hostname()
	fmt.Fprintln(w, host)
	for _, setting := range environment() {
		fmt.Fprintln(w, setting)
	}
}
