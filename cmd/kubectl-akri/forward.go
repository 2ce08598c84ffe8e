package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	constants "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// maxForwardedBytes bounds a response that is read through a port-forward.
const maxForwardedBytes = 8 << 20

// getForwarded sends a GET request to a port of a Pod and returns the body of the
// response. It opens no local port: other users of this machine could connect to it.
func getForwarded(ctx context.Context, config *rest.Config, pod types.NamespacedName, port int, path string) ([]byte, error) {
	connection, err := dialPod(ctx, config, pod)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { connection.Close() })
	defer func() {
		if stop() {
			connection.Close()
		}
	}()
	body, err := getOver(connection, port, path)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("no response: %w", context.Cause(ctx))
	}
	return body, err
}

// dialPod opens a port-forward connection. Like kubectl, it tries a WebSocket first,
// which passes more proxies, and then SPDY, which older API servers need.
func dialPod(ctx context.Context, config *rest.Config, pod types.NamespacedName) (httpstream.Connection, error) {
	server, version, err := rest.DefaultServerUrlFor(withGroupVersion(config))
	if err != nil {
		return nil, err
	}
	target := server.JoinPath(version, "namespaces", pod.Namespace, "pods", pod.Name, "portforward")
	connection, err := dialWebSocket(ctx, config, target)
	if httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) {
		return dialSPDY(ctx, config, target)
	}
	return connection, err
}

func withGroupVersion(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	return config
}

func dialWebSocket(ctx context.Context, config *rest.Config, target *url.URL) (httpstream.Connection, error) {
	transport, holder, err := websocket.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	socket, err := websocket.Negotiate(transport, holder, request,
		constants.WebsocketsSPDYTunnelingPrefix+portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	tunnel := portforward.NewTunnelingConnection("kubectl-akri", socket)
	connection, err := spdy.NewClientConnection(tunnel)
	if err != nil {
		tunnel.Close()
	}
	return connection, err
}

func dialSPDY(ctx context.Context, config *rest.Config, target *url.URL) (httpstream.Connection, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	proxy := http.ProxyFromEnvironment
	if config.Proxy != nil {
		proxy = config.Proxy
	}
	upgrader, err := spdy.NewRoundTripperWithConfig(spdy.RoundTripperConfig{TLS: tls, Proxier: proxy})
	if err != nil {
		return nil, err
	}
	transport, err := rest.HTTPWrappersForConfig(config, upgrader)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set(httpstream.HeaderProtocolVersion, portforward.PortForwardProtocolV1Name)
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return upgrader.NewConnection(response)
}

// getOver sends the request over two streams of a connection, one for data and one for
// the kubelet's errors.
func getOver(connection httpstream.Connection, port int, path string) ([]byte, error) {
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	failures, err := connection.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("open the stream of errors: %w", err)
	}
	failures.Close() // nothing is written to it
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("open the stream of data: %w", err)
	}
	body, err := getFrom(data, path)
	if err == nil {
		return body, nil
	}
	_ = data.Reset() // ends the stream of errors
	const maxMessage = 4096
	if message, _ := io.ReadAll(io.LimitReader(failures, maxMessage)); len(message) > 0 {
		return nil, errors.New(strings.TrimSpace(string(message)))
	}
	return nil, err
}

func getFrom(stream io.ReadWriter, path string) ([]byte, error) {
	request, err := http.NewRequest(http.MethodGet, "http://localhost"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Close = true
	if err := request.Write(stream); err != nil {
		return nil, fmt.Errorf("send the request: %w", err)
	}
	response, err := http.ReadResponse(bufio.NewReader(stream), request)
	if err != nil {
		return nil, fmt.Errorf("read the response: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxForwardedBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the response: %w", err)
	case len(body) > maxForwardedBytes:
		return nil, fmt.Errorf("the response has more than %d bytes", maxForwardedBytes)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the response is %s", response.Status)
	}
	return body, nil
}
