package convention

import (
	"slices"
	"strings"
	"testing"
)

// TestStates checks what is kept of the messages that say whether a device is online.
func TestStates(t *testing.T) {
	const config = `homeassistant/switch/a/config {"unique_id":"u","avty_t":"s"}`
	online, offline := []string{"u online homeassistant/switch/a ///"}, []string{"u offline homeassistant/switch/a ///"}
	c := parse(t, "convention: homeAssistant")
	expect := func(why string, want []string) {
		t.Helper()
		if got := summary(c.Devices()); !slices.Equal(got, want) {
			t.Errorf("%s: the devices are %q, want %q", why, got, want)
		}
	}
	apply(t, c, config, epoch)
	apply(t, c, "s online", epoch)
	expect("it says so", online)
	apply(t, c, "s ", epoch)
	expect("its message is removed", offline)
	apply(t, c, "s online", epoch)
	if effect := apply(t, c, "s "+strings.Repeat("x", maxStateBytes+1), epoch); effect.Fault != FaultMalformed {
		t.Errorf("a long message has the effect %+v", effect)
	}
	expect("a message that is ignored", online)
	c.Begin(false, epoch)
	apply(t, c, config, epoch)
	c.End()
	expect("a new list does not have the message", offline)
	long := strings.Repeat("a", maxTopicBytes)
	if effect := apply(t, c, "homeassistant/switch/"+long+"/config {}", epoch); effect.Fault != FaultTooLarge {
		t.Errorf("a long topic has the effect %+v", effect)
	}
}
