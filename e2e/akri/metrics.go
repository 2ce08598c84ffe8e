package akri

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"akri.sh/akri/kubebox/cluster"
)

// ReadMetrics returns the metrics of one of Akri's Pods, which only a port-forward reaches.
func ReadMetrics(ctx context.Context, c *cluster.Cluster, pod string) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	address := listener.Addr().String()
	listener.Close()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	forwarding, stop := context.WithCancel(ctx)
	var failure error // once ended is closed
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, failure = c.Kubectl(forwarding, "port-forward", "--namespace", Namespace, "pod/"+pod, port+":metrics")
	}()
	defer func() { stop(); <-ended }()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		text, err := get(ctx, client, "http://"+address+"/metrics")
		if err == nil {
			return text, nil
		}
		select {
		case <-ended:
			return "", fmt.Errorf("read the metrics of %s: %w: %w", pod, failure, err)
		case <-time.After(20 * time.Millisecond): // until kubectl listens
		}
	}
}

func get(ctx context.Context, client http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return string(text), err
}
