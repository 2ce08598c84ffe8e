package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/cluster"
)

// targetsFile is where Prometheus finds the Pods. Debian's Prometheus is built without the
// discovery of Kubernetes, so the test writes the labels that it would have.
const targetsFile = "pods.json"

// discoverPods writes the Pods of a namespace to targetsFile, until the end of the test.
func discoverPods(t *testing.T, c *cluster.Cluster, dir, namespace string) {
	t.Helper()
	server, client, err := akri.Connect(c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	write := func(ctx context.Context) error {
		groups, err := podTargets(ctx, client, server, namespace)
		if err != nil {
			return err
		}
		text, err := json.Marshal(groups)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, targetsFile)
		if err := os.WriteFile(file+".new", text, 0o644); err != nil {
			return err
		}
		return os.Rename(file+".new", file)
	}
	if err := write(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		var last error
		for ticker := time.NewTicker(time.Second); ; {
			select {
			case <-ctx.Done():
				ticker.Stop()
				done <- last
				return
			case <-ticker.C:
				last = write(ctx)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && t.Failed() {
			t.Logf("the pods cannot be listed: %v", err)
		}
	})
}

// targetGroup is a group of targets as Prometheus reads it from a file.
type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// podTargets returns a target for each port of the Pods, as Prometheus' role Pod does.
func podTargets(ctx context.Context, client *http.Client, server, namespace string) ([]targetGroup, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/api/v1/namespaces/"+namespace+"/pods", nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var list struct {
		Items []struct {
			Metadata struct {
				Name, Namespace string
				Labels          map[string]string
			}
			Spec struct {
				NodeName   string
				Containers []struct {
					Name  string
					Ports []struct {
						Name          string
						ContainerPort int
					}
				}
			}
			Status struct{ PodIP, Phase string }
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("list the pods: %s: %w", response.Status, err)
	}
	groups := []targetGroup{}
	for _, pod := range list.Items {
		if pod.Status.PodIP == "" {
			continue
		}
		for _, container := range pod.Spec.Containers {
			for _, port := range container.Ports {
				labels := map[string]string{
					meta("namespace"): pod.Metadata.Namespace, meta("pod_name"): pod.Metadata.Name,
					meta("pod_phase"): pod.Status.Phase, meta("pod_node_name"): pod.Spec.NodeName,
					meta("pod_container_name"): container.Name, meta("pod_container_port_name"): port.Name,
				}
				for name, value := range pod.Metadata.Labels {
					labels[meta("pod_label_"+name)] = value
				}
				groups = append(groups, targetGroup{[]string{pod.Status.PodIP + ":" + strconv.Itoa(port.ContainerPort)}, labels})
			}
		}
	}
	return groups, nil
}

// meta returns the name of a label of Kubernetes' discovery.
func meta(name string) string {
	return "__meta_kubernetes_" + strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(name)
}

// podScrape returns what the Prometheus Operator makes of the PodMonitor.
func podScrape(monitor monitoringv1.PodMonitor) map[string]any {
	endpoint := monitor.Spec.PodMetricsEndpoints[0]
	relabel := []map[string]any{
		{"source_labels": []string{meta("pod_phase")}, "regex": "Failed|Succeeded", "action": "drop"},
		{"source_labels": []string{meta("pod_container_port_name")}, "regex": *endpoint.Port, "action": "keep"},
	}
	for _, expression := range monitor.Spec.Selector.MatchExpressions {
		relabel = append(relabel, map[string]any{
			"source_labels": []string{meta("pod_label_" + expression.Key)}, "regex": strings.Join(expression.Values, "|"), "action": "keep",
		})
	}
	for target, source := range map[string]string{
		"namespace": "namespace", "pod": "pod_name", "container": "pod_container_name",
		"job": "pod_label_" + monitor.Spec.JobLabel, "endpoint": "pod_container_port_name",
	} {
		relabel = append(relabel, map[string]any{"source_labels": []string{meta(source)}, "target_label": target})
	}
	for _, own := range endpoint.RelabelConfigs {
		relabel = append(relabel, map[string]any{"source_labels": own.SourceLabels, "target_label": own.TargetLabel})
	}
	return map[string]any{
		"job_name": "podMonitor/" + monitor.Namespace + "/" + monitor.Name, "honor_labels": endpoint.HonorLabels,
		"file_sd_configs": []any{map[string]any{"files": []string{targetsFile}, "refresh_interval": "1s"}},
		"relabel_configs": relabel,
	}
}
