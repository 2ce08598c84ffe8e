package webhook

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// named returns a Configuration of a name.
func named(name string) string {
	return strings.Replace(configuration("", ""), "{name: cam}", "{name: "+name+"}", 1)
}

// Nodes know Instances and groups by their names alone, without the namespace: an author
// must not get the name of another namespace's Instance as that of a Configuration.
func TestNameOfAnInstance(t *testing.T) {
	here, there := newWorld(t), newWorld(t)
	here.guard()
	there.guard()
	expect(t, here.as("").apply(named("victim")), "")
	for name, taken := range map[string]bool{
		v0.InstanceName("victim", "/dev/video0", "node1", false):     true,
		v0.LongInstanceName("victim", "/dev/video0", "node1", false): true,
		"victim-facade":        true, // a word, but also six digits
		"victim-front":         false,
		"victim-1234567":       false,
		"camera-facade":        false, // there is no Configuration camera
		"victim-977c1b-977c1b": false,
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, here.as("").dryRun(named(name)), "") // in its own namespace, an author may
			err := there.as("").dryRun(named(name))
			if !taken {
				expect(t, err, "")
				return
			}
			expect(t, err, `metadata.name: another namespace has a Configuration "victim", and nodes would offer the devices of both as `+
				v0.ResourceName(name))
			if strings.Contains(err.Error(), here.Namespace) {
				t.Errorf("the name of another namespace is shown: %v", err)
			}
		})
	}
}

// The other way round: devices of a new Configuration may get the name of an existing
// one.
func TestInstancesNamedLikeAConfiguration(t *testing.T) {
	here, there := newWorld(t), newWorld(t)
	here.guard()
	there.guard()
	for _, name := range []string{"first-977c1b", "first-facade-x", "second-8289ffa8d9", "third-977c1"} {
		expect(t, here.as("").apply(named(name)), "")
	}
	for name, refused := range map[string]string{
		"first":  `another namespace has a Configuration "first-977c1b", and nodes would offer the devices of both as akri.sh/first-977c1b`,
		"second": `another namespace has a Configuration "second-8289ffa8d9"`,
		"third":  "",
	} {
		expect(t, there.as("").dryRun(named(name)), refused)
		expect(t, here.as("").dryRun(named(name)), "")
	}
	chain, err := NewChain(here.options)
	if err != nil {
		t.Fatal(err)
	}
	for perPage := range int64(3) {
		configuration := &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: there.Namespace, Name: "second"}}
		names, err := chain.rivalNames(t.Context(), configuration, perPage+1)
		if err != nil || !slices.Equal(names, []string{"second-8289ffa8d9"}) {
			t.Errorf("%d names per page: found %v, %v", perPage+1, names, err)
		}
	}
}
