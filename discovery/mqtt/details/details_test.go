package details

import (
	"fmt"
	"strings"
	"testing"

	"akri.sh/akri/discovery/handlertest"
)

func TestParse(t *testing.T) {
	got, err := Parse(`
broker: {url: "mqtts://broker.plant", caProperty: ca.crt}
convention: homeAssistant
filters: {ids: {action: Exclude, items: ["test-*"]}}
offlineAfterSeconds: 30
`)
	if err != nil {
		t.Fatal(err)
	}
	if got.Broker.URL != "mqtts://broker.plant:8883" || got.Broker.Address() != "broker.plant:8883" || !got.Broker.TLS() {
		t.Errorf("the broker is %+v", got.Broker)
	}
	if got.Prefix != "homeassistant" || got.Broker.ClientIDPrefix != "akri" || got.OfflineAfterSeconds != 30 {
		t.Errorf("got %+v, want the defaults", got)
	}
	if got.Filters.Admit("test-1", "", "", "") || !got.Filters.Admit("a", "test-1", "", "") {
		t.Error("the filter of ids is not applied, or to another value")
	}
}

func manyProperties(count int) string {
	var properties []string
	for i := range count {
		properties = append(properties, fmt.Sprintf("P%d: $1", i))
	}
	return strings.Join(properties, ", ")
}

func TestMistakes(t *testing.T) {
	const broker, homie = "broker: {url: tcp://b}\n", "broker: {url: tcp://b}\nconvention: homie\n"
	free := func(topics string) string { return broker + "convention: topics\ntopics: {" + topics + "}" }
	topics := func(more string) string { return free("announce: a/+, " + more) }
	handlertest.Validate(t, func(text string) error { _, err := Parse(text); return err }, map[string]handlertest.Details{
		"no broker": {"convention: homie", "broker.url: missing; write the broker's address"},
		"a password in the URL": {
			"broker: {url: \"tcp://me:secret@b\"}\nconvention: homie",
			"broker.url: contains a user name; use discoveryProperties",
		},
		"a password in a bad URL": {"broker: {url: \"tcp://me:secret@b:%zz\"}\nconvention: homie", "broker.url: not a valid URL"},
		"a web socket":            {"broker: {url: \"ws://b\"}\nconvention: homie", "broker.url: unknown scheme \"ws\"; write tcp"},
		"a path":                  {"broker: {url: \"tcp://b/x\"}\nconvention: homie", "broker.url: has a path"},
		"a client id": {
			"broker: {url: \"tcp://b\", clientIdPrefix: \"a/b\"}\nconvention: homie",
			"broker.clientIdPrefix: not a valid prefix",
		},
		"a CA without TLS": {
			"broker: {url: \"tcp://b\", caProperty: ca}\nconvention: homie",
			"broker.caProperty: the connection is not encrypted; write tls://",
		},
		"a key alone": {
			"broker: {url: \"tls://b\", keyProperty: k}\nconvention: homie",
			"broker: only one of certProperty and keyProperty",
		},
		"no convention":         {broker, "convention: missing; write one of homeAssistant, homie, sparkplug"},
		"an unknown convention": {broker + "convention: homy", `convention: there is no convention "homy"; write one of`},
		"an unknown key":        {broker + "conventoin: homie", "conventoin: unknown key; did you mean convention?"},
		"a wildcard prefix":     {homie + "prefix: \"a/#\"", "prefix: contains a wildcard"},
		"a prefix of Sparkplug": {broker + "convention: sparkplug\nprefix: a", "prefix: topics of Sparkplug always begin"},
		"rebirth of homie":      {homie + "rebirth: true", "rebirth: only Sparkplug has rebirths"},
		"topics of homie":       {homie + "topics: {announce: a/+, id: $1}", "topics: only the convention topics has it"},
		"no topics":             {broker + "convention: topics", "topics: missing, but convention is topics"},
		"no announce":           {free("id: $1"), "topics.announce: missing"},
		"everything":            {free("announce: +/+, id: $1"), "topics.announce: has no level +, or no other level"},
		"a multi-level":         {free("announce: a/#, id: $1"), `topics.announce: the level "#" is not valid`},
		"half a level":          {free("announce: a/b+, id: $1"), `topics.announce: the level "b+" is not valid`},
		"no id":                 {free("announce: a/+"), "topics.id: missing"},
		"an unknown level":      {topics("id: $2"), "topics.id: $2 is not a level of topics.announce; write $1 to $1"},
		"a bad path":            {topics("id: payload..x"), `topics.id: "payload..x" is not a path; write payload.x`},
		"brackets":              {topics("id: \"payload.device[0].serial\""), "write payload.device.0.serial"},
		"a query":               {topics("id: $1, online: {topic: b, is: [x], value: payload.a.#}"), "is not a path; write keys"},
		"online without is":     {topics("id: $1, online: {topic: b/$1}"), "topics.online.is: missing"},
		"online wildcard":       {topics("id: $1, online: {topic: b/+, is: [x]}"), "topics.online.topic: contains a wildcard"},
		"online value":          {topics("id: $1, online: {topic: b, is: [x], value: x}"), "is not a part of the payload"},
		"a long expression":     {topics("id: " + strings.Repeat("$1", 600)), "topics.id: 1200 bytes, the limit is 1024"},
		"a long topic":          {topics("id: $1, online: {topic: b/" + strings.Repeat("$1", 512) + ", is: [x]}"), "1026 bytes, the limit"},
		"no end of online":      {topics("id: $1, online: {topic: b/$1/, is: [x]}"), "topics.online.topic: begins or ends with /"},
		"a bad property":        {topics("id: $1, properties: {A: x, B: $2}"), "topics.properties.B: $2 is not a level"},
		"many properties":       {topics("id: $1, properties: {" + manyProperties(maxProperties+1) + "}"), "use at most 100"},
		"a bad variable":        {topics("id: $1, properties: {a-b: x}"), "topics.properties.a-b: not a name"},
		"a reserved variable":   {topics("id: $1, properties: {MQTT_DEVICE_ID: x}"), "the handler sets"},
		"a negative time":       {homie + "offlineAfterSeconds: -1", "offlineAfterSeconds: -1 is not between 0 and 86400"},
		"a bad filter":          {homie + "filters: {ids: {action: include, items: []}}", "filters.ids.action: want Include or Exclude"},
	})
}

func TestExpressions(t *testing.T) {
	free := FreeTopics{
		Announce: "plant/+/+/info", ID: "$1/$2",
		Online:     &Online{Topic: "state/x$2/y", Is: []string{"1"}},
		Properties: map[string]Expression{"LINE": "line $1", "MODEL": "payload.model.0"},
	}
	if err := free.check(); err != nil {
		t.Fatal(err)
	}
	levels := []string{"hall", "press"}
	if got := free.ID.Text(levels); got != "hall/press" {
		t.Errorf("the id is %q", got)
	}
	if got := free.Online.Topic.Text(levels); got != "state/xpress/y" {
		t.Errorf("the topic of the state is %q", got)
	}
	if got := free.Online.Topic.Filter(); got != "state/+/y" {
		t.Errorf("the filter of states is %q", got)
	}
	if path, ok := free.Online.Value.Path(); !ok || path != "" {
		t.Errorf("the path of the state is %q, %v", path, ok)
	}
	if got := free.Properties["LINE"].Text(levels); got != "line hall" {
		t.Errorf("LINE is %q", got)
	}
	if path, ok := free.Properties["MODEL"].Path(); !ok || path != "model.0" {
		t.Errorf("the path of MODEL is %q, %v", path, ok)
	}
}

// FuzzParse checks that details never cause a panic, and that what is accepted has a
// usable address and no password.
func FuzzParse(f *testing.F) {
	f.Add("broker: {url: tcp://b}\nconvention: homie")
	f.Add("broker: {url: tls://b:1}\nconvention: topics\ntopics: {announce: a/+/b, id: $1, online: {topic: x/$1, is: [y]}}")
	f.Fuzz(func(t *testing.T, text string) {
		details, err := Parse(text)
		if err != nil {
			return
		}
		if !strings.Contains(details.Broker.Address(), ":") || strings.Contains(details.Broker.URL, "@") {
			t.Errorf("the broker is %+v", details.Broker)
		}
		if details.Topics != nil {
			details.Topics.ID.Text(make([]string, 100))
			if details.Topics.Online != nil {
				details.Topics.Online.Topic.Filter()
			}
		}
	})
}
