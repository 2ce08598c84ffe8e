package templates

import (
	"strings"
	"testing"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
)

func TestDisplayName(t *testing.T) {
	for name, tc := range map[string]struct{ template, said, want, problem string }{
		"of the handler":               {"", "oven at opc.tcp://plc", "oven at opc.tcp://plc", ""},
		"of nobody":                    {"", "", "", ""},
		"of the Configuration":         {"{{ INSTANCE_PROPERTIES.ROOM }}: {{ INSTANCE_NAME }}", "oven", "hall: cfg-1", ""},
		"a number":                     {"{{ CAPACITY }}", "oven", "2", ""},
		"a text":                       {"oven", "", "oven", ""},
		"a property that is not there": {"{{ INSTANCE_PROPERTIES.FLOOR }}", "oven", "oven", ""},
		"an empty property":            {"{{ INSTANCE_PROPERTIES.EMPTY }} ", "oven", "oven", ""},
		"lines and colours":            {"", "a\nb\x1b[31m", `a b\x1b[31m`, ""},
		"much text":                    {"", strings.Repeat("x", 1000), strings.Repeat("x", 125) + "…", ""},
		"no expression":                {"{{ ROOM", "oven", "oven", "spec.displayName: "},
		"an expression for all":        {"{{ INSTANCES }}", "oven", "oven", "spec.displayName: "},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := &v0.Configuration{Spec: v0.ConfigurationSpec{Capacity: 2, DisplayName: tc.template}}
			configuration.Name = "cfg"
			properties := map[string]string{"AKRI_DISPLAY_NAME": tc.said, "ROOM": "hall", "EMPTY": ""}
			instance := &v0.Instance{Spec: v0.InstanceSpec{BrokerProperties: properties}}
			instance.Name = "cfg-1"
			compiled := Compile(configuration, confine.Policy{})
			if got := compiled.DisplayName(configuration, instance); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			problem := ""
			for _, found := range compiled.Problems {
				problem += found.Error()
			}
			if !strings.HasPrefix(problem, tc.problem) || (problem == "") != (tc.problem == "") {
				t.Errorf("the problem is %q, want %q", problem, tc.problem)
			}
		})
	}
}
