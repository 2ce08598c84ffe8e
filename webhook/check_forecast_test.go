package webhook

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v0 "akri.sh/akri/api/v0"
)

const (
	forecastMap  = `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}"}, data: {k: "{{ INSTANCE_PROPERTIES.K }}"}}`
	forecastMore = `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}-more"}}`
	forecastPod  = `{apiVersion: v1, kind: Pod, metadata: {name: "{{ INSTANCE_NAME }}-pod"}, spec: {hostname: "x{{ ` +
		`INSTANCE_PROPERTIES.NR }}", containers: [{name: a, image: b}]}}`
	forecastService = `{apiVersion: v1, kind: Service, metadata: {name: "{{ INSTANCE_NAME }}-svc"}, spec: {ports: [{port: "{{ ` +
		`INSTANCE_PROPERTIES.NR | int }}"}]}}`
)

// applied waits until the controller has applied an Instance's objects.
func (w *world) applied(instance string, count int) {
	w.Helper()
	w.Eventually("objects of "+instance, func() string {
		object, err := w.as("").api.Resource(v0.InstanceResource).Namespace(w.Namespace).Get(w.Context(), instance, metav1.GetOptions{})
		if err != nil {
			w.Fatal(err)
		}
		resources, _, _ := unstructured.NestedSlice(object.Object, "status", "resources")
		if len(resources) != count {
			return fmt.Sprintf("there are %d", len(resources))
		}
		return ""
	})
}

// The author of an update is warned about its effect on existing devices.
func TestForecast(t *testing.T) {
	w := newWorld(t)
	w.guard()
	w.control()
	admin := w.as("")
	expect(t, admin.apply(configuration(forecastMap+","+forecastMore+","+forecastPod, "")), "")
	for i := range 3 {
		w.device("cam", fmt.Sprintf("cam-%d", i), fmt.Sprintf(`{K: "v%d", NR: "%d"}`, i, 70000*i+80))
		w.applied(fmt.Sprintf("cam-%d", i), 3)
	}
	for name, tc := range map[string]struct {
		instance string
		says     []string // empty: no warning
	}{
		"one object changes": {strings.Replace(forecastMap, "K }}", "K }}!", 1) + "," + forecastMore + "," + forecastPod,
			[]string{"of 3 Instances: 3 would change, 0 would have objects recreated, 0 would have objects pruned, 0 would fail"}},
		"one object more": {forecastMap + "," + forecastMore + "," + forecastPod + "," + strings.Replace(forecastMore, "-more", "-other", 1),
			[]string{"of 3 Instances: 3 would change, 0 would have"}},
		"one object less": {forecastMap + "," + forecastPod, []string{"of 3 Instances: 0 would change, 0 would have objects " +
			"recreated, 3 would have objects pruned, 0 would fail"}},
		"an immutable field": {forecastMap + "," + forecastMore + "," + strings.Replace(forecastPod, `hostname: "x`, `hostname: "z`, 1),
			[]string{"of 3 Instances: 0 would change, 3 would have objects recreated, 0 would have objects pruned, 0 would fail"}},
		"an immutable field, kept": {forecastMap + "," + forecastMore + "," +
			strings.Replace(strings.Replace(forecastPod, `hostname: "x`, `hostname: "z`, 1), "metadata: {",
				"metadata: {annotations: {akri.sh/on-immutable: fail}, ", 1), []string{"3 would fail", "Instance cam-0: would fail: Pod", "cam-0-pod"}},
		"some fail": {forecastMap + "," + forecastMore + "," + forecastPod + "," + forecastService,
			[]string{"of 3 Instances: 1 would change, 0 would have objects recreated, 0 would have objects pruned, 2 would fail",
				"Instance cam-1: would fail: Service", "gives a number, which the API server rejects: FieldValueInvalid"}},
		"a missing property": {forecastMap + "," + forecastMore + "," + forecastPod + "," +
			strings.Replace(forecastMore, `-more"`, `-x{{ if eq INSTANCE_PROPERTIES.NR \"80\" }}`+
				`{{ index INSTANCE_PROPERTIES (print \"NO\" \"NE\") }}{{ end }}"`, 1), nil},
		"only discoveryDetails": {forecastMap + "," + forecastMore + "," + forecastPod, nil},
	} {
		t.Run(name, func(t *testing.T) {
			// A dry run, so that the cases do not depend on each other.
			object := decode(t, configuration(tc.instance, ""))
			object.SetNamespace(w.Namespace)
			if err := unstructured.SetNestedField(object.Object, "descriptions: [foo0, foo1]", "spec", "discoveryHandler",
				"discoveryDetails"); err != nil {
				t.Fatal(err)
			}
			admin.warnings.take()
			_, err := admin.api.Resource(v0.ConfigurationResource).Namespace(w.Namespace).
				Apply(t.Context(), "cam", object, metav1.ApplyOptions{FieldManager: "test", Force: true, DryRun: []string{metav1.DryRunAll}})
			warnings := admin.warnings.take()
			if name == "a missing property" { // the first device is the sample
				expect(t, err, "instanceBrokerResources[3].metadata.name")
				return
			}
			expect(t, err, "")
			for _, words := range tc.says {
				if !strings.Contains(warnings, words) {
					t.Errorf("%q is not among the warnings:\n%s", words, warnings)
				}
			}
			if strings.Contains(warnings, "PodSpec") {
				t.Errorf("an existing Pod is shown: %s", warnings)
			}
			if len(tc.says) == 0 && warnings != "" {
				t.Errorf("warned: %s", warnings)
			}
		})
	}
	// brokerProperties reach the Instances through the agents, with a delay.
	expect(t, admin.apply(configuration(forecastMap+","+forecastMore+","+forecastPod, "")+"  brokerProperties: {K: same}\n"), "")
	if warnings := admin.warnings.take(); !strings.Contains(warnings, "of 3 Instances: 3 would change, 0 would have") {
		t.Errorf("warned: %s", warnings)
	}
	// An identical Configuration is not reviewed. The API server may compare it with a
	// stale object from its cache first, and then again with the current one.
	w.Eventually("an update without a warning", func() string {
		expect(t, admin.apply(configuration(forecastMap+","+forecastMore+","+forecastPod, "")+"  brokerProperties: {K: same}\n"), "")
		return admin.warnings.take()
	})
}

// A property that only the old Configuration set is gone after the update, as kubectl akri
// diff shows it: a template that reads it fails.
func TestForecastOfDroppedProperty(t *testing.T) {
	w := newWorld(t)
	w.guard()
	w.control()
	admin := w.as("")
	const templates = forecastMap + "," + forecastMore
	expect(t, admin.apply(configuration(templates, "")+"  brokerProperties: {K: ours}\n"), "")
	w.device("cam", "cam-0", `{K: ours}`)
	w.device("cam", "cam-1", `{K: of the device}`)
	w.applied("cam-0", 2)
	w.applied("cam-1", 2)
	admin.warnings.take()
	expect(t, admin.apply(configuration(templates, "")), "")
	warnings := admin.warnings.take()
	for _, words := range []string{"of 2 Instances: ", " 1 would fail", "Instance cam-0: would fail: ", `property "K" does not exist`} {
		if !strings.Contains(warnings, words) {
			t.Errorf("%q is not among the warnings:\n%s", words, warnings)
		}
	}
}

// The dry runs of a forecast are limited, whatever the number of templates and devices.
func TestForecastIsBounded(t *testing.T) {
	w := newWorld(t)
	var requests atomic.Int64
	w.seeing(func(request *http.Request) {
		if request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/configmaps/cam-") {
			requests.Add(1)
		}
	})
	w.guard()
	admin := w.as("")
	expect(t, admin.apply(configuration("", "")), "")
	for i := range maxInstances {
		w.device("cam", fmt.Sprintf("cam-%d", i), "{}")
	}
	list := make([]string, 64)
	for i := range list {
		list[i] = strings.Replace(forecastMore, "-more", fmt.Sprintf("-%d", i), 1)
	}
	requests.Store(0)
	expect(t, admin.apply(configuration(strings.Join(list, ", "), "")), "")
	if got := requests.Load(); got > maxForecastRequests+int64(len(list)) {
		t.Errorf("%d dry runs were sent, want at most %d for the forecast and %d for made-up devices", got, maxForecastRequests, len(list))
	}
	const want = "of 20 Instances: 20 would change, 0 would have objects recreated, 0 would have objects pruned, 0 would fail, " +
		"20 could not be checked"
	if warnings := admin.warnings.take(); !strings.Contains(warnings, want) {
		t.Errorf("warned: %s, want %q", warnings, want)
	}
}

// However many Instances there are, the webhook reads the first ones only, one at a time, and
// keeps none: it lists their names by the label that agents set.
func TestManyInstances(t *testing.T) {
	w := newWorld(t)
	var lists, reads atomic.Int64
	w.seeing(func(request *http.Request) {
		switch {
		case !strings.Contains(request.URL.Path, "/instances"):
		case !strings.HasSuffix(request.URL.Path, "/instances"):
			reads.Add(1)
		case strings.Contains(request.Header.Get("Accept"), "as=Table") && request.URL.Query().Get("includeObject") == "None" &&
			request.URL.Query().Get("limit") == "20":
			lists.Add(1)
		default:
			t.Errorf("it lists all Instances: %s", request.URL)
		}
	})
	w.guard()
	admin := w.as("")
	expect(t, admin.apply(configuration(forecastMap, "")), "")
	for i := range maxInstances + 5 {
		w.device("cam", fmt.Sprintf("cam-%d", i), "{K: v}")
	}
	expect(t, admin.apply(configuration(forecastMap+","+forecastMore, "")), "")
	if warnings := admin.warnings.take(); !strings.Contains(warnings, "of the first 20 Instances: 20 would change") {
		t.Errorf("warned: %s", warnings)
	}
	if lists.Load() != 1 || reads.Load() != maxInstances+1 {
		t.Errorf("the webhook sent %d lists and %d reads", lists.Load(), reads.Load())
	}
}

// An object that could not be created is in the inventory without a UID. Nothing is
// pruned when its template is removed.
func TestForecastPrunesOnlyWhatExists(t *testing.T) {
	w := newWorld(t)
	w.guard()
	w.control()
	admin := w.as("")
	admin.make(configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cam-0-more}, data: {k: theirs}}`)
	expect(t, admin.apply(configuration(forecastMap+","+forecastMore, "")), "")
	w.device("cam", "cam-0", `{K: v}`)
	w.applied("cam-0", 2)
	admin.warnings.take()
	expect(t, admin.apply(configuration(forecastMap, "")), "")
	if warnings := admin.warnings.take(); warnings != "" {
		t.Errorf("warned: %s", warnings)
	}
}

// An object that the Configuration owns is tried as an update. An object of another
// owner is left alone, with a warning.
func TestGroup(t *testing.T) {
	w := newWorld(t)
	w.guard()
	w.control()
	admin := w.as("")
	const (
		settings = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, immutable: true, data: {k: one}}`
		services = `{apiVersion: v1, kind: Service, metadata: {name: cameras}, spec: {ports: [{port: 80}]}}`
	)
	expect(t, admin.apply(configuration("", settings+","+services)), "")
	w.device("cam", "cam-0", "{}")
	w.Eventually("the objects of the group", func() string {
		if !w.exists(schemaObject{apiVersion: "v1", kind: "ConfigMap", name: "settings"}) ||
			!w.exists(schemaObject{apiVersion: "v1", kind: "Service", name: "cameras"}) {
			return "one does not exist"
		}
		return ""
	})
	expect(t, admin.apply(configuration("", settings+","+strings.Replace(services, "port: 80", "port: 81", 1))), "")
	if warnings := admin.warnings.take(); warnings != "" {
		t.Errorf("warned: %s", warnings)
	}
	expect(t, admin.apply(configuration("", settings+","+strings.Replace(services, "port: 80", "port: 0", 1))),
		"spec.configurationBrokerResources[1].spec.ports[0].port")
	expect(t, admin.apply(configuration("", strings.Replace(settings, "one", "two", 1)+","+services)), "")
	if warnings := admin.warnings.take(); !strings.Contains(warnings, "spec.configurationBrokerResources[0]: the template changes an "+
		"immutable field of the existing object") {
		t.Errorf("warned: %q", warnings)
	}
	admin.make(configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}, data: {k: hush}}`)
	theirs := strings.Replace(settings, "name: settings", "name: theirs", 1)
	expect(t, admin.apply(configuration("", theirs)), "")
	if warnings := admin.warnings.take(); !strings.Contains(warnings, "spec.configurationBrokerResources[0].metadata.name: ConfigMap "+
		"theirs exists and was not created for this Configuration") {
		t.Errorf("warned: %q", warnings)
	}
	for _, choice := range []string{"skip", "adopt"} {
		expect(t, admin.apply(configuration("", strings.Replace(theirs, "metadata: {",
			"metadata: {annotations: {akri.sh/on-conflict: "+choice+"}, ", 1))), "")
		if warnings := admin.warnings.take(); warnings != "" {
			t.Errorf("%s, and warned: %s", choice, warnings)
		}
	}
}

// An Instance that is gone when its turn comes is not counted.
func TestForecastOfInstancesThatAreGone(t *testing.T) {
	affected := affectedInstances{names: []string{"cam-0", "cam-1"}}
	findings := summary(affected, []prediction{{gone: true}, {change: true}})
	if len(findings) != 1 || findings[0].Path != "of 1 Instances" {
		t.Errorf("the summary is %v, want one of 1 Instances", findings)
	}
	if findings = summary(affected, []prediction{{gone: true}, {gone: true}}); len(findings) > 0 {
		t.Errorf("the summary is %v, want none", findings)
	}
}
