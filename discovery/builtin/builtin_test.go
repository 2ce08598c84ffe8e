package builtin_test

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"akri.sh/akri/discovery/builtin"
)

func TestWithout(t *testing.T) {
	all := len(builtin.Validators)
	rest, err := builtin.Without([]string{"debugEcho"})
	if err != nil || len(rest) != all-1 || rest["debugEcho"] != nil || len(builtin.Validators) != all {
		t.Errorf("%d of %d validators, %v", len(rest), all, err)
	}
	const want = `"debugecho": not a built-in handler: use `
	if _, err := builtin.Without([]string{"debugecho"}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("an unknown name: %v", err)
	}
}

// TestValidators checks that each refuses a misspelled key with the text of a
// discovery/details.Fault.
func TestValidators(t *testing.T) {
	for name, validate := range builtin.Validators {
		if err := validate("noSuchKey: 1"); err == nil || !strings.Contains(err.Error(), "noSuchKey: unknown key") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzValidators checks that no details make a validator panic, or refuse them without a text.
func FuzzValidators(f *testing.F) {
	for _, seed := range []string{
		"http://a/", "urls: [http://a/]\nexpect: {path: a.0.b}", "index: {url: http://a/, items: a, properties: {A: b}}", "{", "&a [*a]",
		"services: [\"*\"]\ntxt: {model: \"X*\", \"!demo\": \"\"}\ninstances: {items: [\"?*\"]}", "descriptions: [a, 1]",
		"opcuaDiscoveryMethod: {standard: {}, scan: {cidrs: [10.1.2.0/30]}}",
		"{opcuaDiscoveryMethod: {mdns: {}}, allowHosts: ['*.a', 10.0.0.0/8], id: applicationUri}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, validate := range builtin.Validators {
			if err := validate(text); err != nil && err.Error() == "" {
				t.Errorf("%s: an error without a text", name)
			}
		}
	})
}

// hostile has details of less than 64 KiB that would take hundreds of megabytes.
var hostile = map[string]string{
	"a long text, repeated": "- &a " + strings.Repeat("x", 30<<10) + "\n- [" + strings.Repeat("*a,", 10_000) + "]\n",
	"empty maps":            "any: [" + strings.Repeat("{},", 21_000) + "]",
	"aliases of maps":       "any: [&a {}, &b [" + strings.Repeat("*a,", 1000) + "]," + strings.Repeat("*b,", 60) + "]",
	"long texts of one key": "urls: &a [" + strings.Repeat("x", 30<<10) + "]\nindex: [" + strings.Repeat("*a,", 10_000) + "]\n",
	"repetitions":           "udevRules:\n" + strings.Repeat(`- 'KERNEL!="`+strings.Repeat("(x|y){999}", 300)+"\"'\n", 20),
	"repetitions of one":    "udevRules:\n" + strings.Repeat(`- 'KERNEL!="x{999}"'`+"\n", 200),
	"large classes":         "udevRules:\n" + strings.Repeat(`- 'KERNEL!="`+strings.Repeat(`\pL`, 1000)+"\"'\n", 20),
	"alternatives":          "udevRules:\n" + strings.Repeat(`- 'KERNEL!="`+strings.Repeat("|", 3000)+"\"'\n", 20),
}

// TestHostileDetails checks that no validator allocates more than the webhook reserves: 200
// times the size, here four times as much because it is what is allocated in all.
func TestHostileDetails(t *testing.T) {
	const limit = 4 * 200 * 64 << 10
	for what, text := range hostile {
		if len(text) > 64<<10 {
			t.Errorf("%s: %d bytes are refused anyway", what, len(text))
		}
		for name, validate := range builtin.Validators {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := validate(text)
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > limit {
				t.Errorf("%s for %s: %d MiB are allocated, %v", what, name, allocated>>20, err)
			}
		}
	}
}

// TestImports checks that a program that validates details does not become a handler.
func TestImports(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		ours, isOurs := strings.CutPrefix(name, "akri.sh/akri/discovery/")
		if strings.HasPrefix(name, "google.golang.org/grpc") || name == "akri.sh/akri/discovery" ||
			isOurs && ours != "builtin" && !strings.HasSuffix(ours, "details") {
			t.Errorf("%s is among the dependencies: import only packages of details", name)
		}
	}
}
