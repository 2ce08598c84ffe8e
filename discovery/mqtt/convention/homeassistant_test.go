package convention

import (
	"strings"
	"testing"
)

// homeAssistantCases are further cases of TestConventions.
var homeAssistantCases = map[string]conventionCase{
	"Home Assistant, short keys": {
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/sensor/x/t/config {"~":"boiler/1","avty_t":"~/status","uniq_id":"x_t","dev":{"ids":["b1","alias"],` +
				`"name":"Boiler","mf":"Acme","mdl":"B","sw":3}}`,
			"boiler/1/status online",
		},
		want: []string{"b1 online boiler/1 Boiler/Acme/B/3"},
	},
	"Home Assistant, long keys and several entities": {
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/sensor/a/config {"name":"T","availability":[{"topic":"p/bridge",` +
				`"value_template":"{{ value_json.state }}"},{"topic":"p/a"}],"availability_mode":"all","device":{"identifiers":"d1",` +
				`"name":"Device"}}`,
			`homeassistant/switch/a/config {"name":"S","availability_topic":"p/s","payload_available":"1",` +
				`"device":{"identifiers":"d1","name":"Device"}}`,
			`p/bridge {"state":"online"}`,
			"p/a offline",
			"p/s 1",
		},
		want: []string{"d1 online homeassistant/sensor/a Device///"},
	},
	"Home Assistant, one of two entities is available": {
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/sensor/a/config {"name":"T","avty_t":"p/a","dev":{"ids":"d1","name":"Device"}}`,
			`homeassistant/sensor/b/config {"name":"U","avty_t":"p/b","dev":{"ids":"d1","name":"Device"}}`,
			"p/a online",
			"p/b offline",
		},
		want: []string{"d1 online homeassistant/sensor/a Device///"},
	},
	"Home Assistant, all topics of availability": {
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/sensor/a/config {"availability":[{"topic":"p/x"},{"topic":"p/y"}],"availability_mode":"all","device":{"ids":"d1"}}`,
			"p/x online",
		},
		want: []string{"d1 offline homeassistant/sensor/a ///"},
	},
	"Home Assistant, device with components": {
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/device/d/config {"dev":{"cns":[["mac","02:5b"]],"name":"D"},"o":{"name":"x"},` +
				`"cmps":{"a":{"p":"sensor","stat_t":"d/t"}}}`,
		},
		want: []string{"mac:02:5b online homeassistant/device/d D///"},
	},
	"Home Assistant, entity without a device": {
		details: "convention: homeAssistant", messages: []string{`homeassistant/switch/garden/config {"name":"Garden","command_topic":"x"}`},
		want: []string{"homeassistant/switch/garden online homeassistant/switch/garden Garden///"},
	},
	"Home Assistant, removed": {
		details:  "convention: homeAssistant",
		messages: []string{`homeassistant/switch/a/config {"dev":{"ids":"1"}}`, "homeassistant/switch/a/config "},
	},
	"Home Assistant, a template that is not supported": {
		reason:  "the device is found, but that topic cannot say that it is offline",
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/switch/a/config {"dev":{"ids":"1"},"avty_t":"x","avty_tpl":"{{ value_json.state.upper() }}"}`,
		},
		want:  []string{"1 online homeassistant/switch/a /// MQTT_AVAILABILITY=unknown"},
		fault: FaultTemplate,
	},
	"Home Assistant, a wildcard as topic of availability": {
		details:  "convention: homeAssistant",
		messages: []string{`homeassistant/switch/a/config {"dev":{"ids":"1"},"avty_t":"#"}`},
		want:     []string{"1 online homeassistant/switch/a /// MQTT_AVAILABILITY=unknown"},
		fault:    FaultTopic,
	},
	"Home Assistant, deep JSON": {
		details:  "convention: homeAssistant",
		messages: []string{`homeassistant/switch/a/config {"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}"},
		fault:    FaultMalformed,
	},
	"Home Assistant, numbers and Booleans for texts": {
		reason:  "they are compared as the texts that Python makes of them",
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/climate/pump/config {"uniq_id":7,"avty":{"t":"p/state","val_tpl":"{{ value_json.up }}","pl_avail":true},` +
				`"dev":{"ids":[501],"name":12,"mdl":1.50,"mf":false,"sw":null}}`,
			`homeassistant/switch/relay/config {"uniq_id":"r","avty_t":"r/up","pl_avail":1,"dev":{"ids":"502"}}`,
			`homeassistant/switch/small/config {"avty_t":"s/up","pl_avail":true,"dev":{"ids":"503"}}`,
			`homeassistant/sensor/plain/config {"uniq_id":504,"stat_t":"x"}`,
			`p/state {"up":true}`, "r/up 1", "s/up true",
		},
		want: []string{
			"501 online homeassistant/climate/pump 12/False/1.5/", "502 online homeassistant/switch/relay ///",
			"503 offline homeassistant/switch/small ///", "504 online homeassistant/sensor/plain ///",
		},
	},
	"Home Assistant, a device without identifiers": {
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/sensor/gw/t/config {"uniq_id":"gw-t","stat_t":"gw/t","dev":{"ids":[],"name":"Gateway"}}`,
			`homeassistant/sensor/gw/u/config {"uniq_id":"gw-u","stat_t":"gw/u",` +
				`"dev":{"ids":[null,{}],"cns":[["mac"],["mac",""]],"name":"Gateway"}}`,
			`homeassistant/sensor/gw/v/config {"uniq_id":"gw-v","stat_t":"gw/v","dev":"Gateway"}`,
		},
		want: []string{
			"gw-t online homeassistant/sensor/gw/t Gateway///", "gw-u online homeassistant/sensor/gw/u Gateway///",
			"gw-v online homeassistant/sensor/gw/v ///",
		},
	},
	"Home Assistant, entities that share an identifier or a connection": {
		reason:  "the third joins what the first two describe, and the fourth joins by its MAC address",
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/sensor/a/config {"stat_t":"a","dev":{"cns":[["mac","02-00-5E-00-53-0A"]]}}`,
			`homeassistant/sensor/b/config {"stat_t":"b","dev":{"ids":["app-1","x"],"name":"Inverter"}}`,
			`homeassistant/sensor/c/config {"stat_t":"c","dev":{"ids":["SN1","x"],"cns":[["mac","02:00:5e:00:53:0a"]],"name":"I","sw":"2"}}`,
			`homeassistant/sensor/d/config {"stat_t":"d","dev":{"ids":"SN2"}}`,
		},
		want: []string{"SN2 online homeassistant/sensor/d ///", "app-1 online homeassistant/sensor/b Inverter///2"},
	},
	"Home Assistant, entities with less about their device": {
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/light/relay/config {"cmd_t":"r","dev":{"ids":["C1"],"mdl":"Mini"}}`,
			`homeassistant/sensor/relay/config {"stat_t":"s","dev":{"ids":["C1"],"name":"Relay","mf":"Acme","mdl":"Maxi","sw":"9"}}`,
		},
		want: []string{"C1 online homeassistant/light/relay Relay/Acme/Mini/9"},
	},
	"Home Assistant, a connection is the id": {
		details:  "convention: homeAssistant",
		messages: []string{`homeassistant/sensor/a/config {"stat_t":"a","dev":{"cns":[["mac","02005E00530A"],["serial","02005E00530A"]]}}`},
		want:     []string{"mac:02:00:5e:00:53:0a online homeassistant/sensor/a ///"},
	},
	"Home Assistant, entities without availability": {
		reason:  "they do not keep a dead device online",
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/sensor/b/config {"stat_t":"b","avty":[{"t":"bridge"},{"t":"b/avty"}],"avty_mode":"all","dev":{"ids":"b"}}`,
			`homeassistant/device_automation/b/press/config {"atype":"trigger","t":"b/press","avty_t":"bridge","dev":{"ids":"b"}}`,
			`homeassistant/tag/b/config {"t":"b/tag","dev":{"ids":"b"}}`,
			`homeassistant/update/b/config {"stat_t":"b/update","dev":{"ids":"b"}}`,
			`homeassistant/tag/reader/config {"t":"r/tag","dev":{"ids":"r","name":"Reader"}}`,
			"bridge online", "b/avty offline",
		},
		want: []string{"b offline homeassistant/device_automation/b/press ///", "r online homeassistant/tag/reader Reader///"},
	},
	"Home Assistant, components of a device": {
		reason:  "they have the availability of the device, or their own; one with only a platform is removed",
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/device/rack/config {"~":"rack/1","dev":{"ids":"rack"},"avty_t":"~/lwt","cmps":{` +
				`"t":{"p":"sensor","stat_t":"~/t"},"press":{"p":"device_automation","t":"~/press"}}}`,
			`homeassistant/device/fan/config {"device":{"ids":"fan"},"availability_topic":"fan/lwt","components":{` +
				`"f":{"platform":"fan","command_topic":"fan/set","availability_topic":"fan/f"},"g":{"platform":"sensor"}}}`,
			`homeassistant/device/gone/config {"dev":{"ids":"gone"},"cmps":{"t":{"p":"sensor"}}}`,
			"rack/1/lwt offline", "fan/lwt offline", "fan/f online",
		},
		want: []string{"fan online homeassistant/device/fan ///", "rack offline rack/1 ///"},
	},
	"Home Assistant, no entities": {
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/sensor/a/config {}`, `homeassistant/sensor/b/config {"migrate_discovery":true}`,
			`homeassistant/sensor/c/config {"migr_discvry":true,"o":{"name":"x"}}`, `homeassistant/sensor/d/config {"note":"x"}`,
			`homeassistant/device/f/config {"dev":{"ids":"f"}}`,
		},
		fault: FaultMalformed,
	},
	"Home Assistant, an entity leaves with an empty object": {
		details:  "convention: homeAssistant",
		messages: []string{`homeassistant/sensor/e/config {"stat_t":"x","dev":{"ids":"e"}}`, `homeassistant/sensor/e/config {}`},
	},
	"Home Assistant, migration to a device message": {
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/sensor/rack/t/config {"stat_t":"t","avty_t":"lwt","dev":{"ids":"rack"}}`, "lwt online",
			`homeassistant/sensor/rack/t/config {"migrate_discovery":true}`,
		},
		want: []string{"rack online homeassistant/sensor/rack/t ///"},
	},
	"Home Assistant, migration from a device message": {
		reason:  "nothing else in the message counts",
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/device/fan/config {"dev":{"ids":"fan"},"avty_t":"lwt","cmps":{"f":{"p":"fan","cmd_t":"c"}}}`, "lwt online",
			`homeassistant/device/fan/config {"migr_discvry":true,"uniq_id":"f","dev":{"ids":"other"}}`,
		},
		want: []string{"fan online homeassistant/device/fan ///"},
	},
	"Home Assistant, components that are no objects": {
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/device/s/config {"dev":{"ids":"s"},"cmps":{"a":{"p":"sensor","stat_t":"x"}}}`,
			`homeassistant/device/r/config {"dev":{"ids":"r"},"cmps":{"a":{"p":"sensor","stat_t":"x"},"b":7}}`,
			`homeassistant/device/s/config {"dev":{"ids":"s"},"cmps":{"a":null}}`,
		},
		want:  []string{"r online homeassistant/device/r ///", "s online homeassistant/device/s ///"},
		fault: FaultMalformed,
	},
	"Home Assistant, topics with ~": {
		reason:  "it is the base only if there is one, of a component its own",
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/sensor/a/config {"avty_t":"~/lwt","dev":{"ids":"a"}}`, "~/lwt online",
			`homeassistant/sensor/b/config {"~":"b","avty":{"t":"lwt/~"},"dev":{"ids":"b"}}`, "lwt/b online",
			`homeassistant/device/c/config {"dev":{"ids":"c"},"avty":[{"t":"~/lwt"}],"cmps":{"x":{"~":"c/x","p":"sensor"}}}`, "c/x/lwt online",
		},
		want: []string{"a online homeassistant/sensor/a ///", "b online b ///", "c online homeassistant/device/c ///"},
	},
	"Home Assistant, the payload of an item of availability": {
		reason:  "pl_avail next to the list belongs to the topic next to the list, not to its items",
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/sensor/a/config {"avty":[{"t":"a"}],"pl_avail":"1","dev":{"ids":"a"}}`, "a online",
			`homeassistant/sensor/b/config {"avty":[{"t":"b","pl_avail":false}],"dev":{"ids":"b"}}`, "b False",
		},
		want: []string{"a online homeassistant/sensor/a ///", "b online homeassistant/sensor/b ///"},
	},
	"Home Assistant, an identifier that is a unique_id or a connection of another": {
		reason:  "only identifiers, and only connections, are shared",
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/sensor/a/config {"uniq_id":"x","stat_t":"a"}`,
			`homeassistant/sensor/b/config {"stat_t":"b","dev":{"ids":["b","x"],"cns":[["ip","c"]]}}`,
			`homeassistant/sensor/c/config {"stat_t":"c","dev":{"ids":["c","ip:c"]}}`,
			`homeassistant/sensor/d/config {"uniq_id":"x","stat_t":"d","dev":{"ids":[" "]}}`,
		},
		want: []string{"b online homeassistant/sensor/b ///", "c online homeassistant/sensor/c ///", "x online homeassistant/sensor/a ///"},
	},
	"Home Assistant, topics that end the connection to some brokers": {
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/sensor/a/config {"avty":[{"t":"a\n"},{"t":"a\uffff"},{"t":"a\u0085"},{"t":"` + strings.Repeat("a/", 200) +
				`"}],"dev":{"ids":"a"}}`,
		},
		want:  []string{"a online homeassistant/sensor/a /// MQTT_AVAILABILITY=unknown"},
		fault: FaultTopic,
	},
	"Home Assistant, after a migration": {
		details: "convention: homeAssistant",
		messages: []string{
			`homeassistant/sensor/rack/t/config {"stat_t":"t","avty_t":"lwt","dev":{"ids":"rack"}}`, "lwt online",
			`homeassistant/sensor/rack/t/config {"migrate_discovery":true}`,
			`homeassistant/device/rack/config {"dev":{"ids":"rack"},"o":{"name":"x"},"avty_t":"lwt","cmps":{"t":{"p":"sensor","stat_t":"t"}}}`,
			`homeassistant/sensor/rack/t/config `,
		},
		want: []string{"rack online homeassistant/device/rack ///"},
	},
	"Home Assistant, a topic that Home Assistant does not accept": {
		details:  "convention: homeAssistant",
		messages: []string{`homeassistant/sensor/my~lamp/config {"stat_t":"t","dev":{"ids":"l"}}`},
		fault:    FaultTopic,
	},
	"Zigbee2MQTT, names of other types and with strange characters": {
		reason:  "the odd ones take nothing with them",
		details: "convention: zigbee2mqtt",
		messages: []string{
			"zigbee2mqtt/bridge/state online",
			`zigbee2mqtt/bridge/devices [{"ieee_address":"0x1","friendly_name":17,"software_build_id":3,"definition":{"model":9,"vendor":null}},` +
				`7,{"ieee_address":"0x2","friendly_name":"lamp #2"},{"ieee_address":"0x3","friendly_name":"c+d"},{"friendly_name":"x"},` +
				`{"ieee_address":"0x4","friendly_name":"hall","disabled":"no","type":null}]`,
		},
		want:  []string{"0x1 online zigbee2mqtt/17 17//9/3", "0x4 online zigbee2mqtt/hall hall///"},
		fault: FaultTopic,
	},
}

// TestTemplates checks templates of Home Assistant.
func TestTemplates(t *testing.T) {
	for _, tc := range []struct{ template, payload, want string }{
		{"", "x", "x"},
		{"{{ value }}", "on\n", "on"},
		{"{{value_json}}", "true", "True"},
		{"{{ value_json.a['b c'][1].d }}", `{"a":{"b c":[0,{"d":"x"}]}}`, "x"},
		{"{{- value_json.up -}}", `{"up":false}`, "False"},
		{"{{ value_json.x }}", `{"x":1.0}`, "1.0"},
		{"{{ value_json.x }}", `{"x":1e2}`, "100.0"},
		{"{{ value_json.none }}", "{}", ""},
		{"{{ value_json.x }}", "no JSON", ""},
		{"{{ 'online' if value == '1' else 'offline' }}", "1", "online"},
		{"{{ 'online' if value == 1 else 'offline' }}", "1", "offline"}, // a text is no number
		{"{{ 'online' if value == '1' else 'off (x)' }}", "2", "off (x)"},
		{`{{ "online" if value_json.state != "off" else "offline" }}`, `{"state":"on"}`, "online"},
		{"{{ 'online' if value_json.up else 'offline' }}", `{"up":true}`, "online"},
		{"{{ 'online' if value_json.up else 'offline' }}", `{"up":0}`, "offline"},
		{"{{ 'online' if value_json.up == true else 'offline' }}", `{"up":1}`, "online"}, // as in Python
		{"{{ 'online' if (value_json.up == True) else 'offline' }}", `{"up":"true"}`, "offline"},
		{"{{ 'online' if value_json.n != -3.0 else 'offline' }}", `{"n":-3}`, "offline"},
		{"{{ 'online' if value_json.x == 'a' }}", `{}`, ""},
		{"{{ True if value_json.n == -3 else False }}", `{"n":-3}`, "True"},
		{"{{ 1 if value == 'b' else 0 }}", "a", "0"},
		{"{% if value_json.state == 'ready' %}online{% else %}offline{% endif %}", `{"state":"ready"}`, "online"},
		{"{%- if ( value == 'a' ) -%} online {%- else -%} offline {%- endif -%}", "b", "offline"},
		{"{% if value_json.list %}online{% endif %}", `{"list":[]}`, ""},
		{"{% if value_json.list %}online{% endif %}", `{"list":[0]}`, "online"},
	} {
		parsed, supported := parseTemplate(tc.template)
		if got := parsed.render(tc.payload); !supported || got != tc.want {
			t.Errorf("%s of %s is %q, supported %v; want %q", tc.template, tc.payload, got, supported, tc.want)
		}
	}
	for _, text := range []string{
		"x", "{{ states('sensor.x') }}", "{{ value_json.a.upper() }}", "{{ value.x }}",
		"{{ value if value else 'x' }}", "{{ 'a' if value in ['b'] else 'c' }}",
		"{% if value %}a{% elif value == 'b' %}b{% endif %}", "{{ value | int }}", "{{ value_json.a == 'b' }}",
		"{{ 'a' if (value else 'b' }}", "{{ 'a' if value) else 'b' }}", "{{ 'a' if not value else 'b' }}", "{{ 'a' if value > 1 else 'b' }}",
		"{{ value " + strings.Repeat(" ", maxTemplateBytes) + "}}",
	} {
		if _, supported := parseTemplate(text); supported {
			t.Errorf("%.50s is supported", text)
		}
	}
}

// TestKept checks that messages that change nothing keep what their topics announced, also in a
// new list.
func TestKept(t *testing.T) {
	for _, payload := range []string{`{"migrate_discovery":true}`, "{"} {
		c := parse(t, "convention: homeAssistant")
		apply(t, c, `homeassistant/sensor/a/config {"stat_t":"x","dev":{"ids":"a"}}`, epoch)
		c.Begin(false, epoch)
		apply(t, c, "homeassistant/sensor/a/config "+payload, epoch)
		if c.End(); len(c.Devices()) != 1 {
			t.Errorf("%s: the device is gone", payload)
		}
	}
}
