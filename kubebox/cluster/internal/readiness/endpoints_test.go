package readiness

import (
	"slices"
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
