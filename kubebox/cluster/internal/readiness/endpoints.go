package readiness

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
)

// Endpoint returns the address and port of a ready endpoint of a Service. The port is a
// name. If there are several endpoints, it is a random one.
func (c *Client) Endpoint(ctx context.Context, namespace, service, port string) (string, error) {
	path := "/apis/discovery.k8s.io/v1/namespaces/" + url.PathEscape(namespace) + "/endpointslices?labelSelector=" +
		url.QueryEscape("kubernetes.io/service-name="+service)
	body, err := c.get(ctx, path)
	if err != nil {
		return "", fmt.Errorf("endpoints of Service %s/%s: %w", namespace, service, err)
	}
	ready, err := readyEndpoints(body, port)
	if err != nil {
		return "", fmt.Errorf("endpoints of Service %s/%s: %w", namespace, service, err)
	}
	if len(ready) == 0 {
		return "", fmt.Errorf("the Service %s/%s has no ready endpoint with a port %s", namespace, service, port)
	}
	return ready[rand.N(len(ready))], nil
}

// readyEndpoints returns the addresses of the ready endpoints in a list of EndpointSlices.
func readyEndpoints(list []byte, port string) ([]string, error) {
	var slices struct {
		Items []struct {
			Endpoints []struct {
				Addresses  []string
				Conditions struct{ Ready *bool }
			}
			Ports []struct {
				Name string
				Port int
			}
		}
	}
	if err := json.Unmarshal(list, &slices); err != nil {
		return nil, err
	}
	var ready []string
	for _, slice := range slices.Items {
		for _, p := range slice.Ports {
			if p.Name != port {
				continue
			}
			for _, e := range slice.Endpoints {
				if len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
					ready = append(ready, net.JoinHostPort(e.Addresses[0], strconv.Itoa(p.Port)))
				}
			}
		}
	}
	return ready, nil
}
