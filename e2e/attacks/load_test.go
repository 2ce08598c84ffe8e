package attacks

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"akri.sh/akri/kubebox/clustertest"
)

// maxAnswer bounds how long another user waits for admission next to an attack, on a machine
// that answers within a tenth of a second otherwise.
const maxAnswer = 2 * time.Second

// large is a Configuration of a few kilobytes whose templates render to tens of
// megabytes.
func large(name string, templates int) object {
	var instance, group []string
	for i := range templates {
		data := `{{ repeat 30000 "abcdefgh" }}`
		instance = append(instance, configMap(fmt.Sprintf("{{INSTANCE_NAME}}-%d", i), data))
		group = append(group, configMap(fmt.Sprintf("%s-%d", name, i), data))
	}
	return configuration(name, spec{devices: []string{"d"}, instance: instance, group: group})
}

// unknown is a Configuration of kinds that the API server does not serve.
func unknown(name string, round int) object {
	var instance []string
	for i := range 64 {
		instance = append(
			instance,
			fmt.Sprintf("{apiVersion: g%d-%d.example.com/v1, kind: Kind%d, metadata: {name: '{{INSTANCE_NAME}}'}}", round, i, i),
		)
	}
	return configuration(name, spec{devices: []string{"d"}, instance: instance})
}

// flood sends requests from several clients of one user, for a while.
func (w *world) flood(clients int, length time.Duration, send func(round int)) {
	var group sync.WaitGroup
	deadline := time.Now().Add(length * time.Duration(long()))
	for client := range clients {
		group.Go(func() {
			for round := client; time.Now().Before(deadline); round += clients {
				send(round)
			}
		})
	}
	group.Wait()
}

// A flood of expensive Configurations delays others' reviews only while it lasts: admission is
// not stopped by what reviews hold in memory, by how many there are, or by what they look up.
func TestFloodOfReviews(t *testing.T) {
	clustertest.Full(t)
	for what, body := range map[string]func(round int) object{
		"large renderings": func(round int) object { return large(fmt.Sprintf("flood-%d", round), 64) },
		"unknown kinds":    func(round int) object { return unknown(fmt.Sprintf("flood-%d", round), round) },
		"expensive expressions": func(round int) object {
			expression := "{{ range until 1000 }}{{ range until 1000 }}x{{ end }}{{ end }}"
			return configuration(fmt.Sprintf("flood-%d", round), spec{devices: []string{"d"}, instance: manyOf(64, expression)})
		},
		"regular expressions": func(round int) object {
			expression := `{{ regexReplaceAll "(a|aa)+b?" (repeat 20000 "a") "x" }}`
			return configuration(fmt.Sprintf("flood-%d", round), spec{devices: []string{"d"}, instance: manyOf(64, expression)})
		},
		"errors": func(round int) object {
			expression := "{{ nothing " + strings.Repeat("x", 4000)
			return configuration(fmt.Sprintf("flood-%d", round), spec{devices: []string{"d"}, instance: manyOf(64, expression)})
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			attacker, other := w.as("attacker", configurationsOnly), w.as("bystander", configurationsOnly, writes("", "configmaps"))
			apply := func(value string) time.Duration {
				return w.must(other.apply(configuration("bystander-"+w.namespace, spec{
					devices: []string{"b"}, instance: []string{configMap("{{INSTANCE_NAME}}", value)},
				}))).took
			}
			usual := apply("before")
			w.flood(16, 3*time.Second, func(round int) { attacker.create(body(round), "dryRun", "All") })
			if took := apply("after"); took > max(maxAnswer, 30*usual) {
				t.Errorf("another user's apply took %v before the flood, and %v after it", usual, took)
			}
		})
	}
}

// manyOf returns templates of ConfigMaps with one value.
func manyOf(count int, value string) []string {
	var all []string
	for i := range count {
		all = append(all, configMap(fmt.Sprintf("{{INSTANCE_NAME}}-%d", i), value))
	}
	return all
}

// Kinds that are not served cost the API server no discovery per template.
func TestUnknownKinds(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	attacker := w.as("attacker", configurationsOnly)
	reads := func() float64 {
		return w.metric("akri-webhook", `rest_client_requests_total\{code="[0-9]+",host="[^"]*",method="GET"\}`)
	}
	w.refuse("control: kinds that the user may not create", attacker.create(unknown("unknown", 1_000_000), "dryRun", "All"))
	before := reads()
	const rounds = 5
	for round := range rounds {
		attacker.create(unknown("unknown", 2_000_000+round), "dryRun", "All")
	}
	// A review reads whether the name is taken; discovery is one read per group.
	if sent := reads() - before; sent > 20*rounds {
		t.Errorf("%d reviews of 64 unknown kinds each read %.0f times from the API server", rounds, sent)
	}
}

// What one author stores does not stop the controller, or the devices of others in
// another namespace.
func TestLargeTenant(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	attacker := w.as("attacker", configurationsOnly, writes("", "configmaps"))
	c := large("tenant", 16*min(long(), 4))
	several := configuration("x", spec{devices: []string{"a", "b", "c", "d"}})
	c.set(several.at("spec", "discoveryHandler"), "spec", "discoveryHandler")
	w.must(attacker.create(c))
	w.instances("tenant", 4)
	began := time.Now() // while the controller creates the tenant's objects
	other := newWorld(t)
	other.start(configuration("small", spec{devices: []string{"s"}, instance: []string{configMap("{{INSTANCE_NAME}}", "v")}}), 1)
	took := time.Since(began)
	t.Logf("another Configuration was Ready after %v", took.Round(time.Millisecond))
	if took > 10*time.Second {
		t.Errorf("another Configuration was Ready only after %v", took)
	}
}

// A tenant's ready-when conditions cost nobody a watch or a list of the kind.
func TestManyConditions(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	lists := func() int {
		total := 0
		for line := range strings.Lines(w.must(w.admin.send(request{method: "GET", path: "/metrics"})).text) {
			if strings.HasPrefix(line, "apiserver_request_total") && strings.Contains(line, `resource="configmaps"`) &&
				strings.Contains(line, `scope="cluster"`) && (strings.Contains(line, `verb="LIST"`) || strings.Contains(line, `verb="WATCH"`)) {
				var count int
				fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &count)
				total += count
			}
		}
		return total
	}
	conditions := func(offset int) []string {
		var all []string
		for i := range 34 {
			all = append(all, annotated(configMap(fmt.Sprintf("{{INSTANCE_NAME}}-%d", i), "v"), "ready-when",
				fmt.Sprintf(`self.data.k == "v" || %d > %d`, offset+i, 1_000_000)))
		}
		return all
	}
	w.start(configuration("conditions", spec{devices: []string{"d"}, instance: conditions(0)}), 1)
	before := lists()
	for round := 1; round <= 2; round++ {
		name := fmt.Sprintf("conditions-%d", round)
		w.start(configuration(name, spec{devices: []string{"d"}, instance: conditions(100 * round)}), 1)
	}
	w.converged("after-conditions")
	if more := lists() - before; more > 2 {
		t.Errorf("68 more conditions caused %d lists and watches of ConfigMaps", more)
	}
}

// Others' objects with Akri's label fill no cache.
func TestLabelledObjects(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	w.start(configuration("labelled", spec{devices: []string{"d"}, instance: []string{
		annotated(configMap("{{INSTANCE_NAME}}", "v"), "ready-when", `self.data.k == "v"`),
	}}), 1)
	author := w.as("author", rule{"", "configmaps", "create,patch"})
	heap := func() float64 { return w.metric("akri-controller", "process_resident_memory_bytes") / (1 << 20) }
	before := heap()
	const size = 900_000
	count := 40 * long()
	for i := range count {
		foreign := parse(configMap(fmt.Sprintf("foreign-%d", i), strings.Repeat("x", size)))
		foreign["metadata"].(map[string]any)["labels"] = map[string]any{
			"app.kubernetes.io/managed-by": "akri",
			"akri.sh/configuration":        "labelled",
		}
		w.must(author.apply(foreign, "fieldManager", "akri-controller"))
	}
	w.converged("after-labelled")
	after := heap()
	t.Logf("the controller's memory: %.0f MiB before, %.0f MiB after %d MB of others' objects", before, after, count*size/1_000_000)
	if after-before > float64(count)*0.4 {
		t.Errorf("the controller keeps others' objects: %.0f MiB before, %.0f MiB after", before, after)
	}
}

// Configurations that no agent needs do not fill the agents' memory.
func TestAgentMemory(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	author := w.as("author", configurationsOnly, writes("", "configmaps"))
	agents := len(w.pods("akri-agent"))
	// The next collection of garbage is due when the heap is twice what is in use. Unlike
	// the resident memory, that does not depend on how much garbage there is now.
	heap := func() float64 { return w.metric("akri-agent", "go_memstats_next_gc_bytes") / 2 }
	before, stored := heap(), 0
	for i := range 99 { // a namespace has up to 100, and converged adds one
		c := configuration(fmt.Sprintf("unneeded-%d", i), spec{
			instance: []string{configMap("{{INSTANCE_NAME}}", strings.Repeat("x", 200_000))}, more: "{discoveryHandler: {name: none}}",
		})
		w.must(author.create(c))
		stored += len(c.json())
	}
	w.converged("after-unneeded") // the agents have read all of them
	limit := before + float64(agents*stored)/2
	w.within(3*time.Minute, "the agents' memory", func() string { // Go collects garbage every two minutes at least
		after := heap()
		t.Logf("%d agents, %d bytes of Configurations: %.0f bytes before, %.0f after", agents, stored, before, after)
		if after > limit {
			return fmt.Sprintf("the agents keep Configurations that they do not need: %.0f bytes, more than %.0f", after, limit)
		}
		return ""
	})
}

// properties returns a map of properties of a size.
func properties(count, size int) map[string]any {
	all := map[string]any{}
	for i := range count {
		all[fmt.Sprintf("P%d", i)] = strings.Repeat("x", size)
	}
	return all
}
