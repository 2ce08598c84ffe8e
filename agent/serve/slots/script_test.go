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

// TestScripts runs the scenarios of testdata: each paragraph is an event, with the
// commands of the machine below it. -rewrite replaces them; review the diff.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		m := slots.New("node-a")
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "state":
				return printState(m.State())
			case "prefer":
				return cmp.Or(strings.Trim(fmt.Sprint(m.Prefer(parseLine(t, d).preference())), "[]"), "(nothing)")
			}
			var out []string
			for _, command := range m.Step(parseLine(t, d).event(m)) {
				out = append(out, command.String())
			}
			for _, violation := range m.Violations() {
				t.Errorf("%s: %s", d.Pos, violation)
			}
			if len(out) == 0 {
				return "(nothing)"
			}
			return strings.Join(out, "\n")
		})
	})
}

// scriptLine is a parsed line of a script. Positional words come first: a call's number,
// the Instance, slots as NUMBER or, in a record, NUMBER:OWNER.
type scriptLine struct {
	t       *testing.T
	d       *datadriven.TestData
	words   []string
	options map[string]string
}

func parseLine(t *testing.T, d *datadriven.TestData) *scriptLine {
	l := &scriptLine{t: t, d: d, options: map[string]string{}}
	for _, arg := range d.CmdArgs {
		switch {
		case len(arg.Vals) > 0:
			l.options[arg.Key] = strings.Join(arg.Vals, " ")
		default:
			l.words = append(l.words, arg.Key)
		}
	}
	return l
}

func (l *scriptLine) word(n int) string {
	if n >= len(l.words) {
		l.d.Fatalf(l.t, "%s: word %d is missing", l.d.Cmd, n+1)
	}
	return l.words[n]
}

func (l *scriptLine) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		l.d.Fatalf(l.t, "%s: %v", l.d.Cmd, err)
	}
	return n
}

func (l *scriptLine) numbers(list []string) []int {
	var out []int
	for _, text := range list {
		out = append(out, l.number(text))
	}
	return out
}

func (l *scriptLine) call() slots.Call { return slots.Call(l.number(l.word(0))) }

// resource returns the resource that a word names: INSTANCE or @CONFIGURATION.
func (l *scriptLine) resource(n int) slots.Resource {
	name, group := strings.CutPrefix(l.word(n), "@")
	return slots.Resource{Name: name, Group: group}
}

func (l *scriptLine) version(option string) uint64 {
	return uint64(l.number(cmp.Or(l.options[option], "0")))
}

func (l *scriptLine) result() slots.Result {
	return slots.Result{
		Outcome: map[string]slots.Outcome{
			"written": slots.Written, "refused": slots.Refused, "unknown": slots.Unknown,
		}[l.options["outcome"]],
		Record: l.record(), Gone: l.options["gone"] != "", Kept: l.options["kept"] != "", Tried: l.version("tried"),
	}
}

// uses parses the IDs that containers have: SLOT or RESOURCE/ID.
func (l *scriptLine) uses(option string) []slots.Use {
	var out []slots.Use
	for text := range strings.FieldsSeq(l.options[option]) {
		resource, id, group := strings.Cut(text, "/")
		if !group {
			resource, id = text[:strings.LastIndex(text, "-")], text
		}
		out = append(out, slots.Use{Resource: resource, ID: id})
	}
	return out
}

func (l *scriptLine) record() *slots.Record {
	if l.options["version"] == "" {
		return nil
	}
	r := &slots.Record{
		Version: l.version("version"), Configuration: l.options["of"], Nodes: strings.Fields(l.options["nodes"]), Usage: map[int]v0.Owner{},
	}
	for entry := range strings.FieldsSeq(l.options["usage"]) {
		slot, value, _ := strings.Cut(entry, ":")
		owner, err := v0.ParseOwner(value)
		if err != nil {
			l.d.Fatalf(l.t, "%v", err)
		}
		r.Usage[l.number(slot)] = owner
	}
	return r
}

func (l *scriptLine) preference() slots.Preference {
	return slots.Preference{
		Resource: l.resource(0), Size: l.number(l.options["size"]),
		Available: l.numbers(strings.Fields(l.options["available"])), Must: l.numbers(strings.Fields(l.options["must"])),
	}
}

// event returns the event that the line describes.
func (l *scriptLine) event(m *slots.Machine) slots.Event {
	switch l.d.Cmd {
	case "now":
		at, err := time.ParseDuration(l.word(0))
		if err != nil {
			l.d.Fatalf(l.t, "%v", err)
		}
		return slots.Ticked{Now: at}
	case "published":
		return slots.DevicePublished{
			Instance:      l.word(0),
			Configuration: l.options["of"],
			Capacity:      l.number(l.options["capacity"]),
			Shared:        l.options["local"] == "",
			Online:        l.options["offline"] == "",
		}
	case "withdrawn":
		return slots.DeviceWithdrawn{Instance: l.word(0)}
	case "recorded":
		return slots.InstanceRecorded{Instance: l.word(0), Record: *l.record()}
	case "left":
		return slots.InstanceLeft{Instance: l.word(0)}
	case "deleted":
		return slots.InstanceDeleted{Instance: l.word(0), Version: uint64(l.number(l.options["version"]))}
	case "allocate":
		return slots.AllocateRequested{Call: l.call(), Resource: l.resource(1), IDs: l.numbers(l.words[2:])}
	case "expired":
		return slots.CallExpired{Call: l.call()}
	case "claimed":
		return slots.ClaimSettled{Instance: l.word(0), Slots: l.numbers(l.words[1:]), Result: l.result()}
	case "probed":
		return slots.ProbeSettled{Instance: l.word(0), Result: l.result()}
	case "released":
		return slots.ReleaseSettled{Instance: l.word(0), Slots: l.numbers(l.words[1:]), Result: l.result()}
	case "observed":
		since := m.Generation()
		if l.options["since"] != "" {
			since = slots.Generation(l.number(l.options["since"]))
		}
		unaccounted := strings.Fields(l.options["unaccounted"])
		return slots.PodsObserved{
			Since: since, Began: m.State().Now, Listed: l.uses("held"),
			Open: append(strings.Fields(l.options["open"]), unaccounted...), Unaccounted: unaccounted,
		}
	}
	l.d.Fatalf(l.t, "unknown command %s", l.d.Cmd)
	return nil
}

func printState(state slots.State) string {
	var b strings.Builder
	fmt.Fprintf(&b, "generation %d\n", state.Generation)
	for _, inst := range state.Instances {
		for _, s := range inst.Slots {
			fmt.Fprintf(&b, "%s-%d: %s %s %s", inst.Name, s.Slot, cmp.Or(s.Owner.String(), "free"), s.Patch, s.State)
			if s.Superseded {
				b.WriteString(" superseded")
			}
			if s.ReleaseUncertain {
				b.WriteString(" release uncertain")
			}
			b.WriteString("\n")
		}
	}
	for _, g := range state.Groups {
		for _, id := range g.IDs {
			fmt.Fprintf(&b, "%s/%s: %s\n", g.Name, id.ID, strings.Join(id.Slots, " "))
		}
	}
	return b.String()
}
