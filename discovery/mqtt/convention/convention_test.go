package convention

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery/mqtt/details"
)

// epoch is when the tests take place.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// parse returns the empty state of a convention.
func parse(t testing.TB, text string) Convention {
	t.Helper()
	d, err := details.Parse("broker: {url: tcp://b}\n" + text)
	if err != nil {
		t.Fatal(err)
	}
	return New(d)
}

// summary describes devices, sorted by id: "id presence base name/manufacturer/model/version more".
func summary(devices []Device) []string {
	var lines []string
	for _, d := range devices {
		line := fmt.Sprintf("%s %s %s %s/%s/%s/%s", d.ID, [...]string{"online", "offline", "unsettled"}[d.Presence], d.BaseTopic,
			d.Name, d.Manufacturer, d.Model, d.Version)
		for _, name := range slices.Sorted(maps.Keys(d.More)) {
			line += " " + name + "=" + d.More[name]
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// conventionCase is a sequence of messages, "topic payload", and the devices after it.
type conventionCase struct {
	reason, details string
	messages        []string
	want            []string
	fault           string // of the last message
}

const tasmotaConfigJSON = `{"ip":"192.0.2.7","dn":"Plug","fn":["Plug",null],"hn":"plug-0042","mac":"AABBCCDDEEFF","md":"Sonoff S20",` +
	`"ofln":"Offline","onln":"Online","sw":"14.2.0","t":"plug","ft":"%prefix%/%topic%/","tp":["cmnd","stat","tele"]}`

var conventionCases = map[string]conventionCase{
	"Homie 4": {
		details: "convention: homie",
		messages: []string{
			"homie/pump/$homie 4.0.0",
			"homie/pump/$name Big pump",
			"homie/pump/$implementation esp8266",
			"homie/pump/$fw/version 1.2",
			"homie/pump/$state ready",
		},
		want: []string{"pump online homie/pump Big pump//esp8266/1.2"},
	},
	"Homie 3 sleeps and alerts": {
		details:  "convention: homie",
		messages: []string{"homie/a/$homie 3.0.1", "homie/a/$state sleeping", "homie/b/$homie 3.0.1", "homie/b/$state alert"},
		want:     []string{"a online homie/a ///", "b online homie/b ///"},
	},
	"Homie without a state": {
		reason: "it may still be announcing itself", details: "convention: homie", messages: []string{"homie/pump/$homie 4.0.0"},
	},
	"Homie is lost": {
		details: "convention: homie",
		messages: []string{
			"homie/a/$homie 4.0.0",
			"homie/a/$state ready",
			"homie/a/$state lost",
			"homie/b/$homie 4.0.0",
			"homie/b/$state init",
		},
		want: []string{"a offline homie/a ///", "b unsettled homie/b ///"},
	},
	"Homie removes itself": {
		reason: "an empty retained payload removes a device", details: "convention: homie",
		messages: []string{"homie/a/$homie 4.0.0", "homie/a/$state ready", "homie/a/$state "},
	},
	"Homie 5": {
		details: "convention: homie\nprefix: plant",
		messages: []string{
			`plant/5/lamp/$description {"homie":"5.0","version":7,"name":"Lamp","type":"dimmer","nodes":{"a":{"b":[1,2]}}}`,
			"plant/5/lamp/$state ready",
		},
		want: []string{"lamp online plant/5/lamp Lamp//dimmer/"},
	},
	"Homie 5 children have no last will": {
		details: "convention: homie",
		messages: []string{
			`homie/5/hub/$description {"name":"Hub"}`, `homie/5/kid/$description {"name":"Kid","root":"hub","parent":"hub"}`,
			"homie/5/hub/$state ready", "homie/5/kid/$state ready", "homie/5/hub/$state lost",
		},
		want: []string{"hub offline homie/5/hub Hub///", "kid offline homie/5/kid Kid///"},
	},
	"Homie 4 and 5 of one device": {
		details: "convention: homie",
		messages: []string{
			"homie/x/$homie 4.0.0",
			"homie/x/$name four",
			"homie/x/$state ready",
			`homie/5/x/$description {"name":"five"}`,
			"homie/5/x/$state ready",
		},
		want: []string{"x online homie/5/x five///"},
	},
	"a Homie 4 device called 5": {
		details:  "convention: homie",
		messages: []string{"homie/5/$homie 4.0.0", "homie/5/$state ready"},
		want:     []string{"5 online homie/5 ///"},
	},
	"Homie description is not JSON": {
		details: "convention: homie", messages: []string{"homie/5/x/$state ready", "homie/5/x/$description {"}, fault: FaultMalformed,
	},
	"Tasmota": {
		details: "convention: tasmota",
		messages: []string{
			"tasmota/discovery/AABBCCDDEEFF/config " + tasmotaConfigJSON,
			"tele/plug/LWT Online",
			"tasmota/discovery/AABBCCDDEEFF/sensors {}",
		},
		want: []string{"AABBCCDDEEFF online tele/plug Plug/Tasmota/Sonoff S20/14.2.0 MQTT_COMMAND_TOPIC=cmnd/plug"},
	},
	"Tasmota before its last will is known": {
		details: "convention: tasmota", messages: []string{"tasmota/discovery/AABBCCDDEEFF/config " + tasmotaConfigJSON},
		want: []string{"AABBCCDDEEFF offline tele/plug Plug/Tasmota/Sonoff S20/14.2.0 MQTT_COMMAND_TOPIC=cmnd/plug"},
	},
	"Tasmota with its own order of levels": {
		details: "convention: tasmota",
		messages: []string{
			`tasmota/discovery/AABBCCDDEEFF/config {"mac":"AABBCCDDEEFF","t":"plug","hn":"h","ft":"hall/%topic%/%id%/%prefix%/",` +
				`"tp":["c","s","t"],"onln":"up"}`,
			"hall/plug/DDEEFF/t/LWT up",
		},
		want: []string{"AABBCCDDEEFF online hall/plug/DDEEFF/t /Tasmota// MQTT_COMMAND_TOPIC=hall/plug/DDEEFF/c"},
	},
	"Tasmota removed": {
		details: "convention: tasmota",
		messages: []string{
			"tasmota/discovery/AABBCCDDEEFF/config " + tasmotaConfigJSON,
			"tele/plug/LWT Online",
			"tasmota/discovery/AABBCCDDEEFF/config ",
		},
	},
	"Tasmota with a wildcard": {
		reason: "a device must not choose what the handler subscribes to", details: "convention: tasmota",
		messages: []string{`tasmota/discovery/A/config {"mac":"A","t":"#","ft":"%topic%","tp":["","",""]}`}, fault: FaultTopic,
	},
	"Zigbee2MQTT": {
		details: "convention: zigbee2mqtt",
		messages: []string{
			`zigbee2mqtt/bridge/state {"state":"online"}`,
			`zigbee2mqtt/bridge/devices [{"type":"Coordinator","ieee_address":"0x0","friendly_name":"Coordinator"},` +
				`{"type":"Router","ieee_address":"0x1","friendly_name":"hall/lamp","software_build_id":"2.1",` +
				`"definition":{"model":"E27","vendor":"Acme","exposes":[]}},` +
				`{"type":"EndDevice","ieee_address":"0x2","friendly_name":"door","manufacturer":"Maker","model_id":"D1","definition":null},` +
				`{"type":"EndDevice","ieee_address":"0x3","friendly_name":"old","disabled":true}]`,
			`zigbee2mqtt/door/availability {"state":"offline"}`, `zigbee2mqtt/hall/lamp/availability online`,
		},
		want: []string{"0x1 online zigbee2mqtt/hall/lamp hall/lamp/Acme/E27/2.1", "0x2 offline zigbee2mqtt/door door/Maker/D1/"},
	},
	"Zigbee2MQTT bridge dies": {
		details: "convention: zigbee2mqtt",
		messages: []string{
			`zigbee2mqtt/bridge/state online`, `zigbee2mqtt/bridge/devices [{"ieee_address":"0x1","friendly_name":"lamp"}]`,
			`zigbee2mqtt/bridge/state offline`,
		},
		want: []string{"0x1 offline zigbee2mqtt/lamp lamp///"},
	},
	"Zigbee2MQTT device leaves": {
		details: "convention: zigbee2mqtt",
		messages: []string{
			`zigbee2mqtt/bridge/state online`,
			`zigbee2mqtt/bridge/devices [{"ieee_address":"0x1","friendly_name":"lamp"}]`,
			`zigbee2mqtt/bridge/devices []`,
		},
	},
	"Zigbee2MQTT list is cut": {
		reason: "half a list must not remove the other half", details: "convention: zigbee2mqtt",
		messages: []string{
			`zigbee2mqtt/bridge/state online`, `zigbee2mqtt/bridge/devices [{"ieee_address":"0x1","friendly_name":"lamp"}]`,
			`zigbee2mqtt/bridge/devices [{"ieee_address":"0x2","friendly_name":"door"}`,
		},
		want: []string{"0x1 online zigbee2mqtt/lamp lamp///"}, fault: FaultMalformed,
	},
	"topics": {
		details: `
convention: topics
topics:
  announce: plant/+/+/info
  id: $1/$2
  online: {topic: "plant/$1/$2/status", is: [online, "1"]}
  properties: {LINE: "line $1", MODEL: payload.device.0.model, NONE: payload.none}`,
		messages: []string{
			`plant/north/press/info {"device":[{"model":"P 7"}]}`, "plant/north/press/status 1",
			"plant/south/drill/info {}", "plant/south/drill/status offline", "plant/x/info no",
		},
		want: []string{
			"north/press online plant/north/press/info /// LINE=line north MODEL=P 7",
			"south/drill offline plant/south/drill/info /// LINE=line south",
		},
	},
	"topics without a state": {
		reason:   "a retained announcement is a device, an empty one is none",
		details:  "convention: topics\ntopics: {announce: a/+, id: payload.serial}",
		messages: []string{`a/1 {"serial": 17}`, `a/2 {"serial": "x"}`, "a/2 "},
		want:     []string{"17 online a/1 ///"},
	},
	"topics with a JSON state": {
		details:  "convention: topics\ntopics: {announce: a/+/info, id: $1, online: {topic: a/$1/info, is: [\"true\"], value: payload.up}}",
		messages: []string{`a/1/info {"up": true}`, `a/2/info {"up": false}`},
		want:     []string{"1 online a/1/info ///", "2 offline a/2/info ///"},
	},
	"topics without an id": {
		details:  "convention: topics\ntopics: {announce: a/+, id: payload.serial}",
		messages: []string{`a/1 {"serial": ""}`},
		fault:    FaultMalformed,
	},
	"strange characters": {
		details:  "convention: topics\ntopics: {announce: a/+, id: \"id-$1\", properties: {X: payload}}",
		messages: []string{"a/ü 'x\ny\x00'\xff", "a//b x", "a/ x", "a/\x01 x"}, fault: FaultMalformed,
		want: []string{"id- online a/ /// X=x", "id-ü online a/ü /// X='x y '\uFFFD"},
	},
}

func init() { maps.Copy(conventionCases, homeAssistantCases) }

func TestConventions(t *testing.T) {
	for name, tc := range conventionCases {
		t.Run(name, func(t *testing.T) {
			c := parse(t, tc.details)
			var effect Effect
			for _, message := range tc.messages {
				effect = apply(t, c, message, epoch)
			}
			if got := summary(c.Devices()); !slices.Equal(got, tc.want) {
				t.Errorf("%s\n got %q\nwant %q", tc.reason, got, tc.want)
			}
			if effect.Fault != tc.fault {
				t.Errorf("the fault is %q, want %q", effect.Fault, tc.fault)
			}
		})
	}
}

// TestOrder checks that the order of retained messages does not matter.
func TestOrder(t *testing.T) {
	for name, tc := range conventionCases {
		removes := slices.ContainsFunc(tc.messages, func(m string) bool { return strings.HasSuffix(m, " ") })
		if removes || strings.Contains(name, "lost") || strings.Contains(name, "is cut") ||
			strings.Contains(name, "last will") || strings.Contains(name, "migration") ||
			strings.Contains(name, "dies") || strings.Contains(name, "leaves") {
			continue // several messages of one topic
		}
		t.Run(name, func(t *testing.T) {
			c := parse(t, tc.details)
			for range 2 { // the topics of the second round are known from the first
				for _, message := range slices.Backward(tc.messages) {
					apply(t, c, message, epoch)
				}
			}
			if got := summary(c.Devices()); !slices.Equal(got, tc.want) {
				t.Errorf("in reverse order\n got %q\nwant %q", got, tc.want)
			}
		})
	}
}

// apply applies "topic payload", and checks that the broker would deliver it.
func apply(t testing.TB, c Convention, message string, now time.Time) Effect {
	t.Helper()
	topic, payload, _ := strings.Cut(message, " ")
	before := summary(c.Devices())
	filters := slices.Sorted(slices.Values(c.Filters()))
	effect := c.Apply(Message{Topic: topic, Payload: []byte(payload)}, now)
	if !effect.Devices && !slices.Equal(before, summary(c.Devices())) {
		t.Errorf("%s changed the devices without a notice", message)
	}
	if !effect.Devices && !slices.Equal(filters, slices.Sorted(slices.Values(c.Filters()))) {
		t.Errorf("%s changed the filters without a notice", message)
	}
	return effect
}

// TestRepeated checks that a message that changes nothing has no effect, so that no list
// is made.
func TestRepeated(t *testing.T) {
	for name, tc := range conventionCases {
		c := parse(t, tc.details)
		for _, message := range tc.messages {
			topic, payload, _ := strings.Cut(message, " ")
			c.Apply(Message{topic, []byte(payload)}, epoch)
			if effect := c.Apply(Message{topic, []byte(payload)}, epoch); effect.Devices {
				t.Errorf("%s: the repeated message %s has the effect %+v", name, message, effect)
			}
		}
	}
}

// TestList checks that what a new list of retained messages does not have is forgotten, and
// that it is known until the end of the list.
func TestList(t *testing.T) {
	for name, tc := range conventionCases {
		c := parse(t, tc.details)
		for range 2 {
			for _, message := range tc.messages {
				apply(t, c, message, epoch)
			}
		}
		c.Begin(true, epoch)
		if got := summary(c.Devices()); !slices.Equal(got, tc.want) {
			t.Errorf("%s: at the beginning of a list, the devices are %q", name, got)
		}
		for _, message := range tc.messages {
			apply(t, c, message, epoch)
		}
		if c.End(); !slices.Equal(summary(c.Devices()), tc.want) {
			t.Errorf("%s: after a list, the devices are %q", name, summary(c.Devices()))
		}
		c.Begin(false, epoch)
		if c.End(); len(c.Devices()) != 0 {
			t.Errorf("%s: after an empty list, the devices are %q", name, summary(c.Devices()))
		}
	}
}

func TestFilters(t *testing.T) {
	c := parse(t, "convention: homeAssistant")
	apply(t, c, `homeassistant/a/b/config {"dev":{"ids":"1"},"avty_t":"x/y"}`, epoch)
	apply(t, c, `homeassistant/a/c/config {"dev":{"ids":"2"},"avty_t":"x/y"}`, epoch)
	if !slices.Contains(c.Filters(), "x/y") {
		t.Error("the topic of availability is not subscribed to")
	}
	apply(t, c, `homeassistant/a/b/config `, epoch)
	if !slices.Contains(c.Filters(), "x/y") {
		t.Error("the topic of availability was forgotten although another entity has it")
	}
	apply(t, c, `homeassistant/a/c/config {"dev":{"ids":"2"}}`, epoch)
	if slices.Contains(c.Filters(), "x/y") {
		t.Error("the topic of availability is still subscribed to")
	}
	c = parse(t, "convention: zigbee2mqtt")
	apply(t, c, `zigbee2mqtt/bridge/devices [{"ieee_address":"1","friendly_name":"a"},{"ieee_address":"2","friendly_name":"b/c"}]`, epoch)
	if got := c.Filters(); !slices.Contains(got, "zigbee2mqtt/b/c/availability") || slices.Contains(got, "zigbee2mqtt/a/availability") {
		t.Errorf("subscribed to %q, want the topics that no wildcard has", got)
	}
}
