package packages

import (
	"os/exec"
	"testing"
)

func TestPackageVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3":                  "1.2.3",
		"v1.2.3-dirty":            "1.2.3+dirty",
		"v1.2.3-rc.1":             "1.2.3~rc.1",
		"v1.2.3-4-g2469d3f":       "1.2.3+4.g2469d3f",
		"v1.2.3-rc.1-4-g2469d3f":  "1.2.3~rc.1+4.g2469d3f",
		"v1.2.3-4-g2469d3f-dirty": "1.2.3+4.g2469d3f.dirty",
		"v0.0.0-g2469d3f":         "0.0.0+g2469d3f",
		"v0.0.0-unknown":          "0.0.0+unknown",
		"1.2.3":                   "",
		"v1.2.3/x":                "",
		"":                        "",
	} {
		got, err := packageVersion(version)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v; want %q", version, got, err, want)
		}
	}
}

// dpkg orders the versions as they were made.
func TestOrder(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("needs dpkg")
	}
	versions := []string{
		"v0.0.0-g2469d3f", "v1.2.3-rc.1", "v1.2.3-rc.1-2-g2469d3f", "v1.2.3", "v1.2.3-4-gfffffff",
		"v1.2.3-10-g0000000", "v1.2.4-rc.1",
	}
	for i := 1; i < len(versions); i++ {
		older, err := packageVersion(versions[i-1])
		if err != nil {
			t.Fatal(err)
		}
		newer, err := packageVersion(versions[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := exec.Command("dpkg", "--compare-versions", older, "lt", newer).Run(); err != nil {
			t.Errorf("%s is not older than %s", older, newer)
		}
	}
}
