package templating_test

import (
	"fmt"
	"strings"
	"testing"

	"akri.sh/akri/templating"
)

// TestExplain checks that each expression is explained with what it mentions, however
// it reads it, and with the value in the object.
func TestExplain(t *testing.T) {
	template := decode[map[string]any](t, []byte(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: "{{ INSTANCE_NAME }}-{{ NODE }}"
  annotations:
    akri.sh/for-each: NODES
    akri.sh/when: "{{ gt CAPACITY 1 }}"
data:
  plain: nothing to tell
  dot: "{{ INSTANCE_PROPERTIES.URL }}/x"
  get: '{{ get INSTANCE_PROPERTIES "MISSING" | default "none" }}'
  twice: '{{ if INSTANCE_PROPERTIES.URL }}{{ INSTANCE_PROPERTIES.URL }}{{ end }}'
  all: '{{ range $key, $value := INSTANCE_PROPERTIES }}{{ $key }}={{ $value }};{{ end }}'
  fails: '{{ INSTANCE_PROPERTIES.ABSENT }}'
  "{{ INSTANCE_NAME }}": key
`))
	set, diagnostics := templating.Compile(templating.InstanceLevel, []map[string]any{template})
	if err := diagnostics.Err(); err != nil {
		t.Fatal(err)
	}
	values := templating.Values{
		Configuration: "cam", Namespace: "ns", Capacity: 2,
		Instance: templating.Instance{Name: "cam-1", Properties: map[string]string{"URL": "rtsp://a"}, Nodes: []string{"b", "a"}},
	}
	var got []string
	for _, e := range set.Explain(values, templating.Origin{Element: "b"}) {
		line := fmt.Sprintf("%s = %v <-", e.Field, e.Value)
		if e.Key {
			line = "key of " + line
		}
		for _, read := range e.Reads {
			line += fmt.Sprintf(" %s(%s)=%v", read.Name, read.Property, read.Value)
		}
		if e.Fault != nil {
			line += " FAULT"
			if !strings.Contains(e.Fault.Error(), "ABSENT") {
				t.Errorf("fault of %s: %v", e.Field, e.Fault)
			}
		}
		got = append(got, line)
	}
	want := `metadata.annotations["akri.sh/when"] = true <- CAPACITY()=2
data.all = URL=rtsp://a; <- INSTANCE_PROPERTIES()=map[URL:rtsp://a]
data.dot = rtsp://a/x <- INSTANCE_PROPERTIES.URL(URL)=rtsp://a
data.fails = <nil> <- INSTANCE_PROPERTIES.ABSENT(ABSENT)=<nil> FAULT
data.get = none <- INSTANCE_PROPERTIES.MISSING(MISSING)=<nil>
data.twice = rtsp://a <- INSTANCE_PROPERTIES.URL(URL)=rtsp://a
key of data["{{ INSTANCE_NAME }}"] = cam-1 <- INSTANCE_NAME()=cam-1
metadata.name = cam-1-b <- INSTANCE_NAME()=cam-1 NODE()=b`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if set.Explain(values, templating.Origin{Index: 7}) != nil {
		t.Error("a template that does not exist is explained")
	}
}
