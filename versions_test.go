package akri_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"akri.sh/akri/internal/kubeversion"
)

var (
	requiredKubernetes = regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes v(\S+)$`)
	versionsToRun      = regexp.MustCompile(`(?m)^VERSIONS \?= (.+)$`)
	// versionRow matches a row of the table: a version, the control plane, the nodes, the result.
	versionRow     = regexp.MustCompile("(?m)^\\| `?([A-Za-z0-9=.]+)`? \\| (1\\.\\d+\\.\\d+) \\| (1\\.\\d+\\.\\d+) \\| (.+) \\|$")
	versionResult  = regexp.MustCompile("^20\\d\\d-\\d\\d-\\d\\d, commit [0-9a-f]{7,}: .*`e2e`")
	minimumVersion = regexp.MustCompile(`needs Kubernetes \*\*(1\.\d+)\*\*`)
	chartMinimum   = regexp.MustCompile(`(?m)^kubeVersion: ">=(1\.\d+)\.0-0"$`)
)

// TestKubernetesVersions checks that the documented versions of Kubernetes are those that
// the Makefile runs, that Akri was tested with, and that it refuses.
func TestKubernetesVersions(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	only := func(file string, pattern *regexp.Regexp) string {
		match := pattern.FindStringSubmatch(read(file))
		if match == nil {
			t.Fatalf("%s: nothing matches %s", file, pattern)
		}
		return match[1]
	}
	const page = "docs/kubernetes-versions.md"
	pinned := only("kubebox/kubernetes/go.mod", requiredKubernetes)
	rows := []string{"pinned"}
	rows = append(rows, strings.Fields(only("Makefile", versionsToRun))...)
	var documented []string
	for _, row := range versionRow.FindAllStringSubmatch(read(page), -1) {
		documented = append(documented, row[1])
		control, nodes := pinned, pinned
		switch variable, version, _ := strings.Cut(row[1], "=v"); variable {
		case "KUBERNETES":
			control, nodes = version, version
		case "KUBELET":
			nodes = version
		}
		if row[2] != control || row[3] != nodes {
			t.Errorf("%s: %s has control plane %s and nodes %s, want %s and %s", page, row[1], row[2], row[3], control, nodes)
		}
		if row[1] != "pinned" && !versionResult.MatchString(row[4]) {
			t.Errorf("%s: the result of %s is %q: write the day, the commit and the directories: 2027-01-31, commit 0123abc: passed in `e2e`",
				page, row[1], row[4])
		}
		if lacks := kubeversion.Lacking("v" + control); len(lacks) > 0 {
			t.Errorf("%s: %s is in the table, but %q", page, control, lacks)
		}
	}
	if !slices.Equal(documented, rows) {
		t.Errorf("%s has the rows %v, want %v: the pinned version, and VERSIONS of the Makefile", page, documented, rows)
	}
	minimum := only(page, minimumVersion)
	if chart := only("charts/akri/Chart.yaml", chartMinimum); chart != minimum {
		t.Errorf("the chart needs Kubernetes %s, the page says %s", chart, minimum)
	}
	if err := kubeversion.Check("v" + minimum + ".0"); err != nil {
		t.Errorf("%s: %v", page, err)
	}
}

var eventsFile = regexp.MustCompile(`--jsonfile=(\S+)`)

// TestVersionsKeepTheirEvents checks that no row of make versions overwrites the events of
// the tests of another: the report at the end reads them all.
func TestVersionsKeepTheirEvents(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Fields(versionsToRun.FindStringSubmatch(string(makefile))[1])
	of := map[string]string{}
	for _, row := range rows {
		command := exec.Command("make", "--no-print-directory", "--dry-run", "e2e-akri", row)
		command.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=") // as tools/gate
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", row, err, output)
		}
		match := eventsFile.FindStringSubmatch(string(output))
		if match == nil {
			t.Fatalf("%s: no file of events in\n%s", row, output)
		}
		if other, taken := of[match[1]]; taken {
			t.Errorf("%s and %s write their events to %s", other, row, match[1])
		}
		of[match[1]] = row
	}
}
