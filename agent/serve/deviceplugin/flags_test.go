package deviceplugin

import (
	"slices"
	"testing"

	"akri.sh/akri/agent/serve/slots"
)

// TestFlags checks the words for each state of an Instance.
func TestFlags(t *testing.T) {
	offered := slots.InstanceState{Published: true, Online: true, Recorded: true, Slots: make([]slots.SlotState, 2)}
	for name, tc := range map[string]struct {
		change func(*slots.InstanceState)
		want   []string
	}{
		"offered":       {func(*slots.InstanceState) {}, nil},
		"missing":       {func(i *slots.InstanceState) { i.Online = false }, []string{"offline"}},
		"not read":      {func(i *slots.InstanceState) { i.Recorded = false }, []string{"unrecorded"}},
		"suspended":     {func(i *slots.InstanceState) { i.Suspended = true }, []string{"suspended"}},
		"created again": {func(i *slots.InstanceState) { i.Slots = []slots.SlotState{{}, {Restoring: true}} }, []string{"restoring"}},
		"left": {
			func(i *slots.InstanceState) { i.Published, i.Online, i.Left = false, false, true }, []string{"unpublished", "left"},
		},
	} {
		instance := offered
		tc.change(&instance)
		if got := flagsOf(&instance); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
