package monitoring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"akri.sh/akri/kubebox/cluster"
)

// address is where Prometheus serves its API, in the network of the node.
const (
	node    = "node1"
	address = "127.0.0.1:19090"
)

// prometheus is a running Prometheus.
type prometheus struct {
	t      *testing.T
	client *http.Client
}

// startPrometheus runs Prometheus in the network of a node until the end of the test.
func startPrometheus(t *testing.T, c *cluster.Cluster, dir string) *prometheus {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "prometheus.log"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- c.Exec(ctx, cluster.Command{
			Node: node, Dir: dir, Stdout: log, Stderr: log,
			Args: []string{
				program(t, "prometheus"), "--config.file=prometheus.yaml", "--web.listen-address=" + address,
				"--storage.tsdb.path=" + filepath.Join(dir, "data"), "--log.level=warn",
			},
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Logf("Prometheus: %v", err)
		}
		log.Close()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("Prometheus' log:\n%s", text)
		}
	})
	dial := func(ctx context.Context, network, to string) (net.Conn, error) { return c.Dial(ctx, node, network, to) }
	return &prometheus{t: t, client: &http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// get calls the API and decodes the field data of the answer.
func (p *prometheus) get(path string, parameters url.Values, data any) error {
	ctx, cancel := context.WithTimeout(p.t.Context(), timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/api/v1/"+path+"?"+parameters.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %s: %w", path, response.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	return json.Unmarshal(answer.Data, data)
}

// query returns the number of series that an expression has now.
func (p *prometheus) query(expr string) (int, error) {
	var data struct{ Result []json.RawMessage }
	err := p.get("query", url.Values{"query": {expr}}, &data)
	return len(data.Result), err
}

// scrapeTarget is something that Prometheus scrapes.
type scrapeTarget struct {
	Labels    map[string]string
	Health    string
	LastError string
}

// targets returns what Prometheus scrapes.
func (p *prometheus) targets() ([]scrapeTarget, error) {
	var data struct{ ActiveTargets []scrapeTarget }
	err := p.get("targets", url.Values{"state": {"active"}}, &data)
	return data.ActiveTargets, err
}

// alertRule is an alert rule and its state.
type alertRule struct {
	Name, Health, LastError, State string
	Alerts                         []struct {
		State       string
		Labels      map[string]string
		Annotations map[string]string
	}
}

// rules returns the rules.
func (p *prometheus) rules() ([]alertRule, error) {
	var data struct{ Groups []struct{ Rules []alertRule } }
	err := p.get("rules", nil, &data)
	var all []alertRule
	for _, group := range data.Groups {
		all = append(all, group.Rules...)
	}
	return all, err
}

// firing describes the firing alerts of a name, or all if the name is empty.
func (p *prometheus) firing(name string) ([]string, error) {
	rules, err := p.rules()
	var all []string
	for _, r := range rules {
		for _, alert := range r.Alerts {
			if alert.State == "firing" && (name == "" || r.Name == name) {
				all = append(all, strings.TrimSpace(r.Name+": "+alert.Annotations["summary"]))
			}
		}
	}
	return all, err
}
