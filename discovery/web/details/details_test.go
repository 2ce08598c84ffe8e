package details

import (
	"strings"
	"testing"

	"akri.sh/akri/discovery/handlertest"
)

func TestParse(t *testing.T) {
	validate := func(text string) error { _, err := Parse(strings.ReplaceAll(text, "\t", "")); return err }
	handlertest.Validate(t, validate, map[string]handlertest.Details{
		"Akri's tutorial": {"http://discovery:9999/discovery", ""},
		"URLs":            {"urls: [http://10.0.0.1/, https://10.0.0.2:8443/status]", ""},
		"an index":        {"index: {url: 'http://inventory/', items: data.devices, address: url, id: serial}", ""},
		"everything": {`
			urls: [http://a/]
			expect: {status: [200, 204], path: ports.0.up, values: ['true']}
			properties: {MODEL: info.model}`, ""},
		"nothing":             {"", "neither urls nor index"},
		"an unknown key":      {"url: [http://a/]", "url: unknown key; did you mean urls?"},
		"both":                {"urls: [http://a/]\nindex: {url: http://b/}", "exclude each other"},
		"no scheme":           {"urls: [a.example]", "urls[0]: \"a.example\" is not a URL"},
		"another scheme":      {"urls: [file:///etc/passwd]", "urls[0]:"},
		"a password":          {"urls: ['http://user:secret@a/']", "urls[0]: contains a user name; put username"},
		"a repeated URL":      {"urls: [http://a/, http://a/]", "urls[1]: repeats http://a/"},
		"an index of nothing": {"index: {items: a}", "index.url:"},
		"a bad path":          {"index: {url: http://a/, items: 'a..b'}", "index.items: \"a..b\" is not a path"},
		"an open bracket":     {"urls: [http://a/]\nexpect: {path: 'a[0'}", "expect.path:"},
		"brackets": {
			"urls: [http://a/]\nproperties: {NAME: 'info.ports[0].name'}",
			`properties.NAME: "info.ports[0].name" is not a path; write info.ports.0.name`,
		},
		"a query":              {"urls: [http://a/]\nproperties: {A: 'a.#(b==1)'}", "wildcards and modifiers are not supported"},
		"a long timeout":       {"urls: [http://a/]\ntimeoutSeconds: 61", "timeoutSeconds: 61 is not between 1 and 60"},
		"a bad status":         {"urls: [http://a/]\nexpect: {status: [20]}", "expect.status[0]: 20 is not a status code"},
		"values without path":  {"urls: [http://a/]\nexpect: {values: [a]}", "expect.values: expect.path is missing"},
		"a bad property":       {"urls: [http://a/]\nproperties: {2nd: a}", "properties.2nd: not a name"},
		"an empty path":        {"urls: [http://a/]\nproperties: {A: ''}", "properties.A: no path"},
		"a key without a cert": {"urls: [http://a/]\ntls: {keyProperty: k}", "tls: only one of"},
		"a zero interval":      {"urls: [http://a/]\nintervalSeconds: 0", "intervalSeconds: 0 is not between 1 and"},
	})
}
