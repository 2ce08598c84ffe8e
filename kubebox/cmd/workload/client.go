package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// caFile is the CA of the API server in a Pod with a ServiceAccount.
const caFile = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"

// requestTimeout bounds a request, including the lookup of its host.
const requestTimeout = 5 * time.Second

// get requests a URL a number of times and writes the first line of each response. Each
// request has a connection of its own, as a Service distributes connections.
func get(ctx context.Context, w io.Writer, count, url string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return fmt.Errorf("the number of requests: %w", err)
	}
	client, err := newClient()
	if err != nil {
		return err
	}
	for range n {
		line, err := firstLine(ctx, client, url)
		if err != nil {
			return err
		}
		fmt.Fprintln(w, line)
	}
	return nil
}

// newClient returns a client that trusts the API server.
func newClient() (*http.Client, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	if pem, err := os.ReadFile(caFile); err == nil {
		roots.AppendCertsFromPEM(pem)
	}
	return &http.Client{Timeout: requestTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots},
	}}, nil
}

// firstLine returns the first line of the response to a request.
func firstLine(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", errors.New(response.Status)
	}
	line := bufio.NewScanner(response.Body)
	line.Scan()
	return line.Text(), line.Err()
}

// lookup writes a line for each host: its name and its addresses, sorted. A host that
// does not exist has no addresses.
func lookup(ctx context.Context, w io.Writer, hosts ...string) error {
	for _, host := range hosts {
		addresses, err := net.DefaultResolver.LookupHost(ctx, host)
		if failure, ok := errors.AsType[*net.DNSError](err); err != nil && (!ok || !failure.IsNotFound) {
			return err
		}
		slices.Sort(addresses)
		fmt.Fprintln(w, strings.Join(append([]string{host}, addresses...), " "))
	}
	return nil
}
