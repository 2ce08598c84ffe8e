package readiness

import (
	"slices"
	"strings"
	"testing"
)

func TestReadyEndpoints(t *testing.T) {
	const list = `{"items": [
	  {"ports": [{"name": "http", "port": 8080}, {"name": "metrics", "port": 9090}], "endpoints": [
	    {"addresses": ["10.244.0.5"], "conditions": {"ready": true}},
	    {"addresses": ["10.244.0.6"], "conditions": {"ready": false}},
	    {"addresses": ["10.244.0.7"], "conditions": {}},
	    {"addresses": []}]},
	  {"ports": [{"name": "http", "port": 8081}], "endpoints": [{"addresses": ["fd00::1"]}]},
	  {"ports": [{"name": "http", "port": 8080}], "endpoints": null}]}`
	for port, want := range map[string][]string{
		"http":    {"10.244.0.5:8080", "10.244.0.7:8080", "[fd00::1]:8081"},
		"metrics": {"10.244.0.5:9090", "10.244.0.7:9090"},
		"other":   nil,
	} {
		got, err := readyEndpoints([]byte(list), port)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", port, got, err, want)
		}
	}
}

func TestServiceWithoutReadyEndpoints(t *testing.T) {
	const slice = `{"items": [{"ports": [{"name": "http", "port": 80}],
	  "endpoints": [{"addresses": ["10.244.0.5"], "conditions": {"ready": %s}}]}]}`
	for _, tc := range []struct {
		reason string
		code   int
		body   string
		want   string
	}{
		{"no slice", 200, `{"items": []}`, "the Service default/web has no ready endpoint with a port http"},
		{"not ready", 200, strings.Replace(slice, "%s", "false", 1), "the Service default/web has no ready endpoint with a port http"},
		{"no list", 200, "[]", "endpoints of Service default/web: json: cannot unmarshal array"},
		{"forbidden", 403, "", "endpoints of Service default/web: 403 Forbidden: "},
		{"ready", 200, strings.Replace(slice, "%s", "true", 1), ""},
	} {
		client := fixed{tc.code, tc.body}.client()
		address, err := client.Endpoint(t.Context(), "default", "web", "http")
		switch {
		case tc.want == "" && (err != nil || address != "10.244.0.5:80"):
			t.Errorf("%s: %s, %v", tc.reason, address, err)
		case tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)):
			t.Errorf("%s\n got %v\nwant %s", tc.reason, err, tc.want)
		}
	}
}
