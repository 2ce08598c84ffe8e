package helm_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestSupportBundle checks that the support bundle collects the logs of all Pods of config/ and of
// the chart, and that each of its redactors masks something.
func TestSupportBundle(t *testing.T) {
	all := objects(t, read(t, "../../config/support/bundle.yaml"))
	collectors, _, _ := unstructured.NestedSlice(all["SupportBundle /akri"], "spec", "collectors")
	var selector []string
	for _, collector := range collectors {
		if found, _, _ := unstructured.NestedStringSlice(collector.(object), "logs", "selector"); len(found) > 0 {
			selector = found
		}
	}
	redactors := regexp.MustCompile(`redactor: '(.*)'`).FindAllStringSubmatch(read(t, "../../config/support/bundle.yaml"), -1)
	for _, redactor := range redactors {
		if !slices.Contains(regexp.MustCompile(redactor[1]).SubexpNames(), "mask") {
			t.Errorf("%s masks nothing", redactor[1])
		}
	}
	if len(selector) != 1 || len(redactors) < 3 {
		t.Fatalf("%d redactors; the logs are those of Pods with %v", len(redactors), selector)
	}
	workloads := render(t, everyHandler)
	for _, dir := range everyDir {
		for id, o := range kustomize(t, "../../config/"+dir) {
			workloads[dir+" "+id] = o
		}
	}
	key, value, _ := strings.Cut(selector[0], "=")
	for id, o := range workloads {
		labels, found, _ := unstructured.NestedStringMap(o, "spec", "template", "metadata", "labels")
		if found && labels[key] != value {
			t.Errorf("the support bundle lacks the logs of %s, whose Pods have the labels %v", id, labels)
		}
	}
}
