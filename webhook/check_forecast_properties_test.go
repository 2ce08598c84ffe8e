package webhook

import (
	"strings"
	"testing"
)

// Users who may write Configurations, but not read Instances, do not learn the properties
// of devices from what admission says.
func TestPropertiesAreNotQuoted(t *testing.T) {
	w := newWorld(t)
	w.guard()
	w.control()
	admin := w.as("")
	expect(t, admin.apply(configuration(forecastMore, "")), "")
	w.device("cam", "cam-0", `{K: "hunter2-abc", NR: "80"}`)
	w.device("cam", "cam-1", `{K: "hunter3-abc", NR: "70080"}`)
	w.applied("cam-0", 1)
	w.applied("cam-1", 1)
	admin.make(configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: taken-hunter2-abc}}`)
	const service = `spec: {ports: [{port: "{{ INSTANCE_PROPERTIES.NR | int }}"}]}}`
	for what, tc := range map[string]struct{ instance, group, says string }{
		"two devices with one name": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: "x-{{ INSTANCE_PROPERTIES.K | trunc 7 }}"}}`, "", "two devices on one node"},
		"an object of both lists": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: "x-{{ INSTANCE_PROPERTIES.K }}"}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: "x-{{ INSTANCE.properties.K }}", annotations: {akri.sh/for-each: ` +
				`INSTANCES}}}`, "is also the name of an object of instanceBrokerResources[0]"},
		"an object that exists": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: "taken-{{ INSTANCE_PROPERTIES.K }}"}}`, "", "exists"},
		"an object that fails": {
			`{apiVersion: v1, kind: Service, metadata: {name: "s-{{ INSTANCE_PROPERTIES.K }}"}, ` + service, "",
			"Instance cam-1: would fail: Service: "},
		"a field of a group": {"", `{apiVersion: v1, kind: Service, metadata: {name: "s-{{ INSTANCE.name }}", annotations: {akri.sh/for-each: ` +
			`INSTANCES}}, spec: {ports: [{port: "{{ INSTANCE.properties.K }}"}]}}`, "gives"},
		"a value of a group": {"", `{apiVersion: v1, kind: Pod, metadata: {name: "s-{{ INSTANCE.name }}", annotations: {akri.sh/for-each: ` +
			`INSTANCES}}, spec: {hostname: "{{ INSTANCE.properties.K }}!", containers: [{name: a, image: b}]}}`, "gives"},
	} {
		t.Run(what, func(t *testing.T) {
			admin.warnings.take()
			said := ""
			if err := admin.apply(configuration(tc.instance, tc.group)); err != nil {
				said = err.Error()
			}
			said += admin.warnings.take()
			if strings.Contains(said, "hunter") {
				t.Errorf("it says %s", said)
			}
			if !strings.Contains(said, tc.says) {
				t.Errorf("%q is not in what it says: %s", tc.says, said)
			}
		})
	}
}
