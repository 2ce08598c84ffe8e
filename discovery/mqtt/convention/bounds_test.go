package convention

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBounds(t *testing.T) {
	t.Run("topics", func(t *testing.T) {
		c := parse(t, "convention: topics\ntopics: {announce: a/+, id: $1}")
		var effect Effect
		for i := range maxTopics + 1 {
			effect = c.Apply(Message{fmt.Sprintf("a/%d", i), []byte("x")}, epoch)
		}
		if effect.Fault != FaultTooMany || len(c.Devices()) != maxTopics {
			t.Errorf("%d devices and the fault %q, want %d and too many", len(c.Devices()), effect.Fault, maxTopics)
		}
		if effect := c.Apply(Message{"a/7", nil}, epoch); !effect.Devices {
			t.Error("a device cannot be removed at the bound")
		}
	})
	t.Run("bytes", func(t *testing.T) {
		c := parse(t, "convention: topics\ntopics: {announce: a/+, id: $1, "+
			"properties: {A: payload.x, B: payload.x, C: payload.x, D: payload.x}}")
		payload := `{"x": "` + strings.Repeat("x", maxRecordBytes/4) + `"}`
		if effect := c.Apply(Message{"a/1", []byte(payload)}, epoch); effect.Fault != FaultTooLarge || len(c.Devices()) != 0 {
			t.Errorf("the announcement has the effect %+v", effect)
		}
		if effect := c.Apply(Message{"a/1", []byte(`{"x": "` + strings.Repeat("x", maxRecordBytes/5) + `"}`)}, epoch); !effect.Devices {
			t.Errorf("an announcement with long values has the effect %+v", effect)
		}
		if effect := c.Apply(Message{"a/1", []byte(payload)}, epoch); effect.Fault != FaultTooLarge || len(c.Devices()) != 1 {
			t.Errorf("an announcement that is ignored has the effect %+v", effect)
		}
		long := strings.Repeat("a", maxRecordBytes)
		if effect := c.Apply(Message{"a/" + long, []byte("{}")}, epoch); effect.Fault == "" {
			t.Errorf("a long topic has the effect %+v", effect)
		}
	})
	t.Run("one of many", func(t *testing.T) {
		c := parse(t, "convention: zigbee2mqtt")
		c.Apply(Message{"zigbee2mqtt/bridge/state", []byte("online")}, epoch)
		list := `[{"ieee_address":"0x1","friendly_name":"` + strings.Repeat("x", maxRecordBytes/4) + `","software_build_id":"` +
			strings.Repeat("y", maxRecordBytes/4) + `"},` +
			`{"ieee_address":"0x2","friendly_name":12},{"ieee_address":"0x3","friendly_name":"#"}]`
		effect := c.Apply(Message{"zigbee2mqtt/bridge/devices", []byte(list)}, epoch)
		if got := summary(c.Devices()); !slices.Equal(got, []string{"0x2 online zigbee2mqtt/12 12///"}) || effect.Fault == "" {
			t.Errorf("the devices are %q, with the effect %+v", got, effect)
		}
	})
	t.Run("edge nodes", func(t *testing.T) {
		c := parse(t, "convention: sparkplug")
		c.Apply(Message{"spBv1.0/g/NBIRTH/n", []byte(payloadOf())}, epoch)
		var effect Effect
		for i := range maxNodes {
			effect = c.Apply(Message{fmt.Sprintf("spBv1.0/g/DBIRTH/n/%d", i), []byte(payloadOf())}, epoch)
		}
		if effect.Fault != FaultTooMany || len(c.Devices()) != maxNodes {
			t.Errorf("%d devices and the fault %q, want %d and too many", len(c.Devices()), effect.Fault, maxNodes)
		}
	})
	t.Run("values", func(t *testing.T) {
		for _, text := range []string{strings.Repeat("ü", 600), strings.Repeat("x", 5000), "a\x00\nb\u2028c", "\xff\xfe"} {
			got := clean(text)
			if len(got) > maxValueBytes || strings.ContainsAny(got, "\x00\n\u2028") || !utf8.ValidString(got) {
				t.Errorf("clean(%.20q) = %q", text, got)
			}
		}
	})
}

// TestLargeTexts checks that no short record keeps, or needs, a large text, and that all together
// have a bound.
func TestLargeTexts(t *testing.T) {
	t.Run("all bytes", func(t *testing.T) {
		c := parse(t, "convention: topics\ntopics: {announce: a/+, id: $1, properties: {A: payload, B: payload}}")
		long, value := "a/"+strings.Repeat("y", 200), []byte(strings.Repeat("x", 400))
		fill := func() (n int) {
			for c.Apply(Message{long + fmt.Sprint(n), value}, epoch).Fault == "" {
				n++
			}
			return n
		}
		devices := fill()
		if devices < maxTopics/2 || devices >= maxTopics || len(c.Devices()) != devices {
			t.Errorf("%d devices, want more than half as many as topics, but not all", devices)
		}
		if effect := c.Apply(Message{long + "0", []byte("x")}, epoch); effect.Fault != "" || !effect.Devices {
			t.Errorf("a shorter text at the bound has the effect %+v", effect)
		}
		c.Begin(true, epoch)
		c.End()
		if again := fill(); again != devices {
			t.Errorf("%d devices after an empty list, want %d", again, devices)
		}
	})
	t.Run("components", func(t *testing.T) {
		c := parse(t, "convention: homeAssistant")
		var components []string
		for i := range maxComponents + 1 {
			components = append(components, fmt.Sprintf(`"%d":{"p":"sensor","avty_t":"s/%d"}`, i, i))
		}
		payload := `{"dev":{"ids":"d"},"cmps":{` + strings.Join(components, ",") + "}}"
		c.Apply(Message{"homeassistant/device/d/config", []byte(payload)}, epoch)
		if n := len(c.Filters()) - 2; n != maxComponents {
			t.Errorf("%d topics, want those of %d components", n, maxComponents)
		}
	})
	t.Run("expansions", func(t *testing.T) {
		c := parse(t, "convention: tasmota")
		topic := strings.Repeat("%hostname%", maxTopicPartBytes/10)
		payload := `{"mac": "A", "hn": "` + strings.Repeat("h", 99) + `", "t": "` + topic + `", "ft": "%topic%", "tp": ["c", "s", "t"]}`
		if effect := c.Apply(Message{"tasmota/discovery/A/config", []byte(payload)}, epoch); effect.Fault != FaultTooLarge {
			t.Errorf("a topic of many parts has the effect %+v", effect)
		}
	})
	t.Run("templates", func(t *testing.T) {
		c := parse(t, "convention: homeAssistant")
		template := "{{ value_json.a" + strings.Repeat(" ", maxRecordBytes) + "}}"
		payload := `{"unique_id": "u", "device": {"identifiers": "d"}, "avty": {"topic": "s", "value_template": "` + template + `"}}`
		if effect := c.Apply(Message{"homeassistant/sensor/a/config", []byte(payload)}, epoch); effect.Fault != FaultTemplate {
			t.Errorf("a long template has the effect %+v", effect)
		}
	})
}
