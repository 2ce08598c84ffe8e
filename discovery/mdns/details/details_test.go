package details

import (
	"strings"
	"testing"

	"akri.sh/akri/discovery/handlertest"
)

func TestParse(t *testing.T) {
	handlertest.Validate(t, func(text string) error { _, err := Parse(text); return err }, map[string]handlertest.Details{
		"one type":   {`services: ["_http._tcp"]`, ""},
		"a sub-type": {`services: [_printer._sub._http._tcp]`, ""},
		"everything": {"services: [_http._tcp]\ndomain: home.arpa\n" +
			"instances: {action: Include, items: [\"a*\"]}\nhosts: {action: Exclude, items: []}\ntxt: {a: b, \"!a\": c}\ninterfaces: [eth0]", ""},
		"empty":            {"", `services: missing; list types of services, such as ["_http._tcp"]`},
		"a type without _": {"services: [http]", `"http" is not a type of services; write it like _http._tcp`},
		"a type with domain": {"services: [_a._tcp, _http._tcp.local]",
			`services[1]: "_http._tcp.local" is not a type of services; write _http._tcp;`},
		"another protocol":    {"services: [_http._sctp]", "services[0]"},
		"a type without name": {"services: [_._tcp]", "services[0]"},
		"two sub-types":       {"services: [_x._sub._sub._http._tcp]", "services[0]"},
		"a bad domain":        {"services: [_http._tcp]\ndomain: a..b", `domain: "a..b" is not a domain`},
		"an empty domain":     {"services: [_http._tcp]\ndomain: \"\"", "domain:"},
		"an empty pattern":    {"services: [_http._tcp]\nhosts: {action: Include, items: [\"\"]}", "hosts.items[0]"},
		"an empty interface":  {"services: [_http._tcp]\ninterfaces: [\"\"]", "interfaces[0]"},
		"a long pattern":      {"services: [_http._tcp]\ntxt: {a: \"" + strings.Repeat("*", 257) + "\"}", "txt.a: a pattern has 257 bytes"},
		"an empty key":        {"services: [_http._tcp]\ntxt: {\"!\": x}", "txt.!: not a key"},
		"a key with =":        {"services: [_http._tcp]\ntxt: {\"a=b\": x}", "txt.a=b: not a key"},
		"a repeated key":      {"services: [_http._tcp]\ntxt: {a: x, A: z}", "the same key as A"},
		"a number as a value": {"services: [_http._tcp]\ntxt: {version: 1}", "txt.version: want a string, not 1; put it in quotes"},
		"too many types":      {"services: [" + strings.Repeat("_http._tcp, ", 51) + "]", "services: more than 50"},
	})
}

func TestAdmits(t *testing.T) {
	text := map[string]string{"model": "X20", "flag": ""}
	get := func(key string) (string, bool) {
		value, found := text[strings.ToLower(key)]
		return value, found
	}
	for filter, want := range map[string]bool{
		`{}`:                                             true,
		`instances: {items: ["camera *"]}`:               true,
		`instances: {items: ["CAMERA ?"]}`:               true,
		`instances: {items: ["camera"]}`:                 false,
		`instances: {action: Exclude, items: ["cam*"]}`:  false,
		`instances: {action: Exclude, items: ["door*"]}`: true,
		`hosts: {items: [cam-1]}`:                        true,
		`hosts: {items: [cam-1.local]}`:                  true,
		`hosts: {action: Exclude, items: ["cam-?"]}`:     false,
		`txt: {model: "X2*"}`:                            true,
		`txt: {MODEL: "X2*"}`:                            true,
		`txt: {model: "x2*"}`:                            false, // case matters in values
		`txt: {model: "X2"}`:                             false,
		`txt: {model: ""}`:                               true, // the key exists
		`txt: {flag: ""}`:                                true,
		`txt: {demo: ""}`:                                false,
		`txt: {"!demo": ""}`:                             true,
		`txt: {"!flag": ""}`:                             false,
		`txt: {"!model": "X3*"}`:                         true,
		`txt: {"!model": "X2*"}`:                         false,
		`txt: {model: "X2*", "!demo": ""}`:               true,
		`txt: {model: "X2*", demo: ""}`:                  false,
	} {
		d, err := Parse("services: [_http._tcp]\n" + strings.TrimPrefix(filter, "{}"))
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Admits("Camera 1", "cam-1.local", get); got != want {
			t.Errorf("%s: %v, want %v", filter, got, want)
		}
	}
}

func TestUsesInterface(t *testing.T) {
	for _, tc := range []struct {
		patterns string
		name     string
		standard bool
		want     bool
	}{
		{"[]", "eth0", true, true},
		{"[]", "veth1", false, false},
		{"[eth0]", "eth0", false, true},
		{"[\"en*\", wlan0]", "enp3s0", true, true},
		{"[\"en*\"]", "eth0", true, false},
	} {
		d, err := Parse("services: [_http._tcp]\ninterfaces: " + tc.patterns)
		if err != nil || d.UsesInterface(tc.name, tc.standard) != tc.want {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}
