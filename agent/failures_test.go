package agent

import (
	"fmt"
	"strings"
	"testing"

	v0 "akri.sh/akri/api/v0"
)

// The API server refuses the whole list if it is too long.
func TestFailuresAreBounded(t *testing.T) {
	f := failures{node: "a"}
	for i := range 2 * v0.MaxNodeFailures {
		f.add(fmt.Sprintf("handler@%03d", i), "no answer")
		f.add(fmt.Sprintf("handler@%03d", i), "still no answer")
	}
	list := f.sorted()
	if len(list) != v0.MaxNodeFailures || list[0].Handler != "handler@000" || list[0].Message != "no answer; and still no answer" {
		t.Errorf("%d failures, first %+v; want %d", len(list), list[0], v0.MaxNodeFailures)
	}
}

// What handlers say becomes one line of bounded length per handler.
func TestFailures(t *testing.T) {
	found := failures{node: "node-a"}
	found.add("b", "first\nnode node-b, handler x: forged \x1b[2J")
	found.add("a", strings.Repeat("long ", 1000))
	found.add("b", "second")
	list := found.sorted()
	if len(list) != 2 || len(list[0].Message) > maxMessageBytes ||
		list[1].Message != `first node node-b, handler x: forged \x1b[2J; and second` {
		t.Errorf("%+v", list)
	}
}
