package slots_test

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// TestScripts runs the scenarios of testdata: a command a paragraph, below it the
// commands of the machine. -rewrite writes them as they are now; read the diff.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		m := slots.New("node-a")
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "state" {
				return printState(m.State())
			}
			var out []string
			for _, command := range m.Step(parseEvent(t, m, d)) {
				out = append(out, command.String())
			}
			for _, violation := range slots.Check(m.State()) {
				t.Errorf("%s: %s", d.Pos, violation)
			}
			if len(out) == 0 {
				return "(nothing)"
			}
			return strings.Join(out, "\n")
		})
	})
}

// parseEvent reads one line of a script. Positional words come first: a call's
// number, the Instance, slots as NUMBER or, in a record, NUMBER:OWNER.
func parseEvent(t *testing.T, m *slots.Machine, d *datadriven.TestData) slots.Event {
	t.Helper()
	var words []string
	options := map[string]string{}
	for _, arg := range d.CmdArgs {
		switch {
		case len(arg.Vals) > 0:
			options[arg.Key] = strings.Join(arg.Vals, " ")
		default:
			words = append(words, arg.Key)
		}
	}
	word := func(n int) string {
		if n >= len(words) {
			d.Fatalf(t, "%s: word %d is missing", d.Cmd, n+1)
		}
		return words[n]
	}
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			d.Fatalf(t, "%s: %v", d.Cmd, err)
		}
		return n
	}
	numbers := func(list []string) []int {
		var out []int
		for _, text := range list {
			out = append(out, number(text))
		}
		return out
	}
	refs := func(list string) []slots.Ref {
		var out []slots.Ref
		for text := range strings.FieldsSeq(list) {
			at := strings.LastIndex(text, "-")
			out = append(out, slots.Ref{Instance: text[:at], Slot: number(text[at+1:])})
		}
		return out
	}
	record := func() *slots.Record {
		if options["version"] == "" {
			return nil
		}
		r := &slots.Record{Version: uint64(number(options["version"])), Usage: map[int]v0.Owner{}}
		for entry := range strings.FieldsSeq(options["usage"]) {
			slot, value, _ := strings.Cut(entry, ":")
			owner, err := v0.ParseOwner(value)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			r.Usage[number(slot)] = owner
		}
		return r
	}
	outcome := map[string]slots.Outcome{"written": slots.Written, "refused": slots.Refused, "unknown": slots.Unknown}
	switch d.Cmd {
	case "now":
		at, err := time.ParseDuration(word(0))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return slots.Ticked{Now: at}
	case "published":
		return slots.DevicePublished{
			Instance: word(0),
			Capacity: number(options["capacity"]),
			Shared:   options["local"] == "",
			Online:   options["offline"] == "",
		}
	case "withdrawn":
		return slots.DeviceWithdrawn{Instance: word(0)}
	case "recorded":
		return slots.InstanceRecorded{Instance: word(0), Record: *record()}
	case "left":
		return slots.InstanceLeft{Instance: word(0)}
	case "deleted":
		return slots.InstanceDeleted{Instance: word(0), Version: uint64(number(options["version"]))}
	case "allocate":
		return slots.AllocateRequested{Call: slots.Call(number(word(0))), Instance: word(1), Slots: numbers(words[2:])}
	case "expired":
		return slots.CallExpired{Call: slots.Call(number(word(0)))}
	case "prefer":
		return slots.PreferenceAsked{
			Call: slots.Call(number(word(0))), Instance: word(1), Size: number(options["size"]),
			Available: numbers(strings.Fields(options["available"])), Must: numbers(strings.Fields(options["must"])),
		}
	case "claimed":
		return slots.ClaimSettled{Instance: word(0), Slots: numbers(words[1:]), Outcome: outcome[options["outcome"]], Record: record()}
	case "released":
		return slots.ReleaseSettled{
			Instance: word(0),
			Slots:    numbers(words[1:]),
			Outcome:  outcome[options["outcome"]],
			Record:   record(),
			Tried:    uint64(number(cmp.Or(options["tried"], "0"))),
			Gone:     options["gone"] != "",
		}
	case "witnessed":
		since := m.Generation()
		if options["since"] != "" {
			since = slots.Generation(number(options["since"]))
		}
		return slots.PodsWitnessed{Since: since, Began: m.State().Now, Held: refs(options["held"]), Ended: refs(options["ended"])}
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return nil
}

func printState(state slots.State) string {
	var b strings.Builder
	fmt.Fprintf(&b, "generation %d\n", state.Generation)
	for _, inst := range state.Instances {
		for _, s := range inst.Slots {
			owner := s.Owner.String()
			if owner == "" {
				owner = "free"
			}
			fmt.Fprintf(&b, "%s-%d: %s %s", inst.Name, s.Slot, owner, s.Phase)
			for _, fact := range []struct {
				name  string
				holds bool
			}{{"granted", s.Granted}, {"unwritten", s.Unwritten}, {"contradicted", s.Contradicted}} {
				if fact.holds {
					b.WriteString(" " + fact.name)
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}
