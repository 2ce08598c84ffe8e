package convention

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzConventions checks that no sequence of messages makes a convention panic, subscribe
// to what it must not, or report an invalid device. A message is a line "topic payload".
func FuzzConventions(f *testing.F) {
	names := []string{
		"convention: homie", "convention: homeAssistant", "convention: sparkplug", "convention: sparkplug\nrebirth: true",
		"convention: tasmota", "convention: zigbee2mqtt",
		"convention: topics\ntopics: {announce: a/+, id: payload.id, online: {topic: b/$1, is: [x], value: payload.s}," +
			" properties: {P: payload.p.0}}",
	}
	for _, tc := range conventionCases {
		for i, name := range names {
			if strings.HasPrefix(strings.TrimSpace(tc.details), name) {
				f.Add(byte(i), strings.Join(tc.messages, "\n"))
			}
		}
	}
	f.Add(byte(3), "spBv1.0/plant/NBIRTH/gw "+nodeBirth(3)+"\nspBv1.0/plant/DBIRTH/gw/pump \nspBv1.0/plant/NDATA/x y")
	f.Add(byte(6), "a/1 {\"id\":1,\"p\":[true]}\nb/1 {\"s\":\"x\"}")
	f.Fuzz(func(t *testing.T, which byte, lines string) {
		c := parse(t, names[int(which)%len(names)])
		now := epoch
		for line := range strings.SplitSeq(lines, "\n") {
			topic, payload, _ := strings.Cut(line, " ")
			if topic == "" || !utf8.ValidString(topic) || strings.ContainsAny(topic, "+#\x00") {
				continue // no broker delivers it
			}
			c.Apply(Message{Topic: topic, Payload: []byte(payload)}, now)
			now = now.Add(time.Second)
		}
		for _, filter := range c.Filters()[min(len(c.Filters()), 8):] {
			if strings.ContainsAny(filter, "+#") {
				t.Errorf("a device makes the handler subscribe to %q", filter)
			}
		}
		seen := map[string]bool{}
		for _, device := range c.Devices() {
			if seen[device.ID] || !validID(device.ID) {
				t.Errorf("the id %q is not valid, or not unique", device.ID)
			}
			seen[device.ID] = true
			for _, value := range []string{device.Name, device.Manufacturer, device.Model, device.Version} {
				if !utf8.ValidString(value) || strings.ContainsAny(value, "\x00\n") || len(value) > maxValueBytes {
					t.Errorf("the value %q is not valid", value)
				}
			}
		}
		if commander, ok := c.(Commander); ok && len(commander.Commands(now)) > maxCommands {
			t.Error("too many commands at once")
		}
		c.Begin(true, now)
		c.End()
		c.Devices()
	})
}

// FuzzBirth checks that a payload of Sparkplug never makes the parser panic.
func FuzzBirth(f *testing.F) {
	f.Add([]byte(nodeBirth(1)))
	f.Add(rebirthCommand(epoch))
	f.Add([]byte("\x12\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		parsed, ok := parseBirth(payload)
		if ok && (len(parsed.model) > maxValueBytes || !utf8.ValidString(parsed.manufacturer)) {
			t.Errorf("parsed %+v", parsed)
		}
	})
}
