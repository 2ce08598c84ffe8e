package webhook

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v0 "akri.sh/akri/api/v0"
)

const (
	fleetMap  = `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}"}, data: {k: "{{ INSTANCE_PROPERTIES.K }}"}}`
	fleetMore = `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}-more"}}`
	fleetPod  = `{apiVersion: v1, kind: Pod, metadata: {name: "{{ INSTANCE_NAME }}-pod"}, spec: {hostname: "x{{ INSTANCE_PROPERTIES.NR }}", containers: [{name: a, image: b}]}}`
	fleetSvc  = `{apiVersion: v1, kind: Service, metadata: {name: "{{ INSTANCE_NAME }}-svc"}, spec: {ports: [{port: "{{ INSTANCE_PROPERTIES.NR | int }}"}]}}`
)

// applied waits until the controller has made an Instance's objects.
func (w *world) applied(instance string, count int) {
	w.Helper()
	w.eventually("objects of "+instance, func() string {
		object, err := w.as("").api.Resource(v0.InstanceResource).Namespace(w.namespace).Get(w.Context(), instance, metav1.GetOptions{})
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

// Who changes a Configuration hears what becomes of the devices that exist.
func TestFleet(t *testing.T) {
	w := enter(t)
	w.guard()
	w.control()
	admin := w.as("")
	said(t, admin.apply(configuration(fleetMap+","+fleetMore+","+fleetPod, "")), "")
	for i := range 3 {
		w.device("cam", fmt.Sprintf("cam-%d", i), fmt.Sprintf(`{K: "v%d", NR: "%d"}`, i, 70000*i+80))
		w.applied(fmt.Sprintf("cam-%d", i), 3)
	}
	for name, tc := range map[string]struct {
		instance string
		says     []string // none: nothing is said
	}{
		"one object changes":         {strings.Replace(fleetMap, "K }}", "K }}!", 1) + "," + fleetMore + "," + fleetPod, []string{"of 3 Instances: 3 would change, 0 have objects recreated, 0 have objects pruned, 0 fail"}},
		"one object more":            {fleetMap + "," + fleetMore + "," + fleetPod + "," + strings.Replace(fleetMore, "-more", "-other", 1), []string{"of 3 Instances: 3 would change, 0 have"}},
		"one object less":            {fleetMap + "," + fleetPod, []string{"of 3 Instances: 0 would change, 0 have objects recreated, 3 have objects pruned, 0 fail"}},
		"what cannot change":         {fleetMap + "," + fleetMore + "," + strings.Replace(fleetPod, `hostname: "x`, `hostname: "z`, 1), []string{"of 3 Instances: 0 would change, 3 have objects recreated, 0 have objects pruned, 0 fail"}},
		"what cannot change, kept":   {fleetMap + "," + fleetMore + "," + strings.Replace(strings.Replace(fleetPod, `hostname: "x`, `hostname: "z`, 1), "metadata: {", "metadata: {annotations: {akri.sh/on-immutable: fail}, ", 1), []string{"3 fail", "Instance cam-0: would fail: Pod", "cam-0-pod"}},
		"some fail":                  {fleetMap + "," + fleetMore + "," + fleetPod + "," + fleetSvc, []string{"of 3 Instances: 1 would change, 0 have objects recreated, 0 have objects pruned, 2 fail", "Instance cam-1: would fail: Service", "must be between 1 and 65535"}},
		"a property that is missing": {fleetMap + "," + fleetMore + "," + fleetPod + "," + strings.Replace(fleetMore, `-more"`, `-x{{ if eq INSTANCE_PROPERTIES.NR \"80\" }}{{ index INSTANCE_PROPERTIES (print \"NO\" \"NE\") }}{{ end }}"`, 1), nil},
		"only a handler's detail":    {fleetMap + "," + fleetMore + "," + fleetPod, nil},
	} {
		t.Run(name, func(t *testing.T) {
			// Each is tried as a dry run of its own, so that none changes the fleet.
			object := decode(t, configuration(tc.instance, ""))
			object.SetNamespace(w.namespace)
			if err := unstructured.SetNestedField(object.Object, "descriptions: [foo0, foo1]", "spec", "discoveryHandler", "discoveryDetails"); err != nil {
				t.Fatal(err)
			}
			admin.heard.all()
			_, err := admin.api.Resource(v0.ConfigurationResource).Namespace(w.namespace).
				Apply(t.Context(), "cam", object, metav1.ApplyOptions{FieldManager: "test", Force: true, DryRun: []string{metav1.DryRunAll}})
			warnings := admin.heard.all()
			if name == "a property that is missing" { // the first device renders for itself: it is the example
				said(t, err, "instanceBrokerResources[3].metadata.name")
				return
			}
			said(t, err, "")
			for _, words := range tc.says {
				if !strings.Contains(warnings, words) {
					t.Errorf("%q is not among the warnings:\n%s", words, warnings)
				}
			}
			if len(tc.says) == 0 && warnings != "" {
				t.Errorf("warned: %s", warnings)
			}
		})
	}
	// brokerProperties reach the Instances by way of the agents, a little later.
	said(t, admin.apply(configuration(fleetMap+","+fleetMore+","+fleetPod, "")+"  brokerProperties: {K: same}\n"), "")
	if warnings := admin.heard.all(); !strings.Contains(warnings, "of 3 Instances: 3 would change, 0 have") {
		t.Errorf("warned: %s", warnings)
	}
	// An identical one is not even looked at.
	said(t, admin.apply(configuration(fleetMap+","+fleetMore+","+fleetPod, "")+"  brokerProperties: {K: same}\n"), "")
	if warnings := admin.heard.all(); warnings != "" {
		t.Errorf("warned: %s", warnings)
	}
}

// An object that could not be created is in the inventory without a UID. Nothing is
// pruned when its template is removed.
func TestFleetPrunesOnlyWhatExists(t *testing.T) {
	w := enter(t)
	w.guard()
	w.control()
	admin := w.as("")
	admin.make(configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cam-0-more}, data: {k: theirs}}`)
	said(t, admin.apply(configuration(fleetMap+","+fleetMore, "")), "")
	w.device("cam", "cam-0", `{K: v}`)
	w.applied("cam-0", 2)
	admin.heard.all()
	said(t, admin.apply(configuration(fleetMap, "")), "")
	if warnings := admin.heard.all(); warnings != "" {
		t.Errorf("warned: %s", warnings)
	}
}

// What the Configuration has for the whole group already is tried as a change of
// it; what others have is left alone, and its author told.
func TestGroup(t *testing.T) {
	w := enter(t)
	w.guard()
	w.control()
	admin := w.as("")
	const (
		settings = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, immutable: true, data: {k: one}}`
		services = `{apiVersion: v1, kind: Service, metadata: {name: cameras}, spec: {ports: [{port: 80}]}}`
	)
	said(t, admin.apply(configuration("", settings+","+services)), "")
	w.device("cam", "cam-0", "{}")
	w.eventually("the group's objects", func() string {
		if !w.exists(schemaObject{apiVersion: "v1", kind: "ConfigMap", name: "settings"}) || !w.exists(schemaObject{apiVersion: "v1", kind: "Service", name: "cameras"}) {
			return "one does not exist"
		}
		return ""
	})
	said(t, admin.apply(configuration("", settings+","+strings.Replace(services, "port: 80", "port: 81", 1))), "")
	if warnings := admin.heard.all(); warnings != "" {
		t.Errorf("warned: %s", warnings)
	}
	said(t, admin.apply(configuration("", settings+","+strings.Replace(services, "port: 80", "port: 0", 1))), "spec.configurationBrokerResources[1].spec.ports[0].port")
	said(t, admin.apply(configuration("", strings.Replace(settings, "one", "two", 1)+","+services)), "")
	if warnings := admin.heard.all(); !strings.Contains(warnings, "spec.configurationBrokerResources[0]: the object that exists cannot be changed into this one") {
		t.Errorf("warned: %q", warnings)
	}
	admin.make(configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}, data: {k: hush}}`)
	theirs := strings.Replace(settings, "name: settings", "name: theirs", 1)
	said(t, admin.apply(configuration("", theirs)), "")
	if warnings := admin.heard.all(); !strings.Contains(warnings, "spec.configurationBrokerResources[0].metadata.name: ConfigMap theirs exists and was not made for this Configuration") {
		t.Errorf("warned: %q", warnings)
	}
	for _, choice := range []string{"skip", "take"} {
		said(t, admin.apply(configuration("", strings.Replace(theirs, "metadata: {", "metadata: {annotations: {akri.sh/on-conflict: "+choice+"}, ", 1))), "")
		if warnings := admin.heard.all(); warnings != "" {
			t.Errorf("%s, and warned: %s", choice, warnings)
		}
	}
}
