package cluster_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"akri.sh/akri/kubebox/cluster"
)

const service = `
apiVersion: v1
kind: Service
metadata: {name: broker}
spec:
  selector: {app: broker}
  ports: [{name: web, port: 8000, targetPort: 80}]
`

// testForward reaches the Pod through a Service, and again after the Service got another
// endpoint.
func (c oneNode) testForward(t *testing.T) {
	if _, err := c.KubectlInput(t.Context(), []byte(service), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	broker := cluster.Service{Namespace: "default", Name: "broker", Port: "web"}
	address, err := c.Forward(t.Context(), broker, 0)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Forward(t.Context(), broker, 0); err != nil || again != address {
		t.Errorf("forwarded again: %s, %v, want %s", again, err, address)
	}
	// Without a label, the Service has no endpoint.
	if answer, err := getFrom(t.Context(), address); err == nil {
		t.Errorf("without an endpoint: %s", answer)
	}
	for range 2 {
		c.kubectl(t, "label", "pod", "broker", "app=broker")
		eventually(t, 30*time.Second, "the Service leads to the pod", func() bool {
			answer, err := getFrom(t.Context(), address)
			return err == nil && bytes.HasPrefix(answer, []byte("broker\n"))
		})
		c.kubectl(t, "label", "pod", "broker", "app-")
		eventually(t, 30*time.Second, "the Service leads nowhere", func() bool {
			_, err := getFrom(t.Context(), address)
			return err != nil
		})
	}
	if _, err := c.Forward(t.Context(), cluster.Service{Name: "broker"}, 0); err == nil {
		t.Error("a Service without a namespace was forwarded")
	}
	_, taken, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := net.LookupPort("tcp", taken)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Forward(t.Context(), cluster.Service{Namespace: "default", Name: "other", Port: "web"}, port); err == nil {
		t.Error("a port was used twice")
	}
}

// getFrom returns the answer of a web server.
func getFrom(ctx context.Context, address string) ([]byte, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}
