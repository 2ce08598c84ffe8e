package install

import (
	"bytes"
	"strings"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"akri.sh/akri/charts/helm"
)

// column is a column of Configurations that the earlier release does not have.
const column = `    - jsonPath: .status.instances
      name: Found
      type: integer
`

// earlier returns the chart as of an earlier release, whose CRD of Configurations lacks a
// column. Everything else is as it is now, until a release has been published.
func earlier(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := helm.Load("v0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range c.Files {
		if file.Name == "files/crds/akri.sh_configurations.yaml" && bytes.Contains(file.Data, []byte(column)) {
			file.Data = bytes.Replace(file.Data, []byte(column), nil, 1)
			return c
		}
	}
	t.Fatalf("the chart has no CRD of Configurations with the column\n%s", column)
	return nil
}

// assertColumn fails the test unless the CRD has the column, or unless it lacks it.
func (w *world) assertColumn(want bool) {
	w.t.Helper()
	columns := w.kubectl("get", "crd", "configurations.akri.sh", "--output=jsonpath={.spec.versions[0].additionalPrinterColumns[*].name}")
	if strings.Contains(columns, "Found") != want {
		w.t.Errorf("the CRD's columns are %s: want Found: %v", columns, want)
	}
}
