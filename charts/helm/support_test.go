package helm_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// bundle has the fields of a SupportBundle and a Redactor that config/support/bundle.yaml uses.
type bundle struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Collectors []struct {
			ClusterInfo      *struct{} `json:"clusterInfo"`
			ClusterResources *struct {
				Namespaces []string `json:"namespaces"`
			} `json:"clusterResources"`
			Logs *struct {
				Name       string           `json:"name"`
				Namespace  string           `json:"namespace"`
				Selector   []string         `json:"selector"`
				Timestamps bool             `json:"timestamps"`
				Limits     map[string]int64 `json:"limits"`
			} `json:"logs"`
		} `json:"collectors"`
		Redactors []struct {
			Name         string `json:"name"`
			FileSelector struct {
				File  string   `json:"file"`
				Files []string `json:"files"`
			} `json:"fileSelector"`
			Removals struct {
				Regex []struct {
					Selector string `json:"selector"`
					Redactor string `json:"redactor"`
				} `json:"regex"`
			} `json:"removals"`
		} `json:"redactors"`
	} `json:"spec"`
}

// TestSupportBundle checks that the file of the support bundle can be read, and that it
// collects the logs of all Pods of config/ and of the chart.
func TestSupportBundle(t *testing.T) {
	text, err := os.ReadFile("../../config/support/bundle.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	var selector, namespaces []string
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var b bundle
		if err := yaml.UnmarshalStrict([]byte(document), &b); err != nil {
			t.Fatal(err)
		}
		found = append(found, b.APIVersion+" "+b.Kind)
		for _, collector := range b.Spec.Collectors {
			if collector.Logs != nil {
				selector, namespaces = collector.Logs.Selector, append(namespaces, collector.Logs.Namespace)
			}
			if collector.ClusterResources != nil {
				namespaces = append(namespaces, collector.ClusterResources.Namespaces[0])
			}
		}
		for _, redactor := range b.Spec.Redactors {
			for _, removal := range redactor.Removals.Regex {
				regexp.MustCompile(removal.Selector)
				if !slices.Contains(regexp.MustCompile(removal.Redactor).SubexpNames(), "mask") {
					t.Errorf("%s: %s masks nothing", redactor.Name, removal.Redactor)
				}
			}
		}
	}
	if !slices.Equal(found, []string{"troubleshoot.sh/v1beta2 SupportBundle", "troubleshoot.sh/v1beta2 Redactor"}) {
		t.Errorf("the file has %v", found)
	}
	if !slices.Equal(namespaces, []string{release().Namespace, release().Namespace}) || len(selector) != 1 {
		t.Fatalf("it collects from the namespaces %v, and logs of %v", namespaces, selector)
	}
	key, value, _ := strings.Cut(selector[0], "=")
	workloads := 0
	for _, dir := range everyDir {
		workloads += selected(t, kustomize(t, "../../config/"+dir), key, value)
	}
	if chart := selected(t, render(t, everyHandler), key, value); chart != workloads || chart < 9 {
		t.Errorf("%d workloads in config/ and %d of the chart were checked", workloads, chart)
	}
}

// selected checks that the Pods of all Deployments and DaemonSets have a label, and returns
// the number of these workloads.
func selected(t *testing.T, all map[string]object, key, value string) (workloads int) {
	t.Helper()
	for id, o := range all {
		if kind := o["kind"]; kind != "Deployment" && kind != "DaemonSet" {
			continue
		}
		workloads++
		labels, _, err := unstructured.NestedStringMap(o, "spec", "template", "metadata", "labels")
		if namespace, _, _ := unstructured.NestedString(o, "metadata", "namespace"); err != nil || labels[key] != value ||
			namespace != release().Namespace {
			t.Errorf("the support bundle lacks the logs of %s, whose Pods have the labels %v", id, labels)
		}
	}
	return workloads
}
