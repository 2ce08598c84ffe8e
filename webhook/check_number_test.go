package webhook

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	v0 "akri.sh/akri/api/v0"
)

// A namespace has a bounded number of Configurations. Existing ones can be changed.
func TestNumberOfConfigurations(t *testing.T) {
	w := newWorld(t)
	admin := w.as("")
	named := func(i int) string {
		return strings.Replace(configuration("", ""), "{name: cam}", fmt.Sprintf("{name: number-%d}", i), 1)
	}
	var group errgroup.Group
	group.SetLimit(8)
	for i := range v0.MaxConfigurations - 1 {
		group.Go(func() error { return admin.apply(named(i)) })
	}
	expect(t, group.Wait(), "")
	w.guard()
	expect(t, admin.apply(named(v0.MaxConfigurations-1)), "")
	expect(t, admin.apply(named(v0.MaxConfigurations)), "the namespace already has 100 Configurations, and the limit is 100; delete one")
	expect(t, admin.apply(strings.Replace(named(0), "foo0", "foo1", 1)), "")
}

// A spec has a bounded size. A larger one that is stored already can be changed, but not grow.
func TestSizeOfASpec(t *testing.T) {
	w := newWorld(t)
	admin := w.as("")
	sized := func(bytes int) string {
		half := strings.Repeat("x", bytes/2)
		return configuration(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}"}, data: {a: %s}}, `+
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}-b"}, data: {b: %s}}`, half, half), "")
	}
	expect(t, admin.apply(sized(maxSpecBytes+10_000)), "")
	w.guard()
	const refused = "KiB of JSON, and the limit is 256 KiB; put large values into a ConfigMap"
	expect(t, admin.apply(sized(maxSpecBytes+20_000)), refused)
	expect(t, admin.apply(sized(maxSpecBytes+5000)), "")
	expect(t, admin.apply(sized(maxSpecBytes-10_000)), "")
	expect(t, admin.apply(sized(maxSpecBytes)), refused)
}
