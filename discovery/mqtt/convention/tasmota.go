package convention

import (
	"cmp"
	"strings"
)

// tasmota is the discovery of Tasmota: a retained configuration for each device, and its
// last will.
type tasmota struct{ prefix string }

// maxTopicPartBytes bounds the texts that topics are made of, as one may contain another
// many times.
const maxTopicPartBytes = 512

func (t tasmota) filters() []string { return []string{t.prefix + "/+/config"} }
func (t tasmota) isConfig(topic string) bool {
	rest, ok := strings.CutPrefix(topic, t.prefix+"/")
	id, last, found := strings.Cut(rest, "/")
	return ok && found && last == "config" && validID(id)
}

// state implements [layout].
func (t tasmota) state(message Message) (text string, ok bool) {
	return clean(string(message.Payload)), !t.isConfig(message.Topic)
}

// parse implements [layout].
func (t tasmota) parse(message Message) (devices []announcement, fault Effect, ok bool) {
	if !t.isConfig(message.Topic) {
		return nil, Effect{}, false
	}
	config, ok := decode(message.Payload)
	mac, topic, order := textOf(config, "mac"), textOf(config, "t"), textOf(config, "ft")
	prefixes := config.Get("tp").Array() // of commands, states and telemetry
	if !ok || !validID(mac) || topic == "" || order == "" || len(prefixes) < 3 {
		return nil, Effect{Fault: FaultMalformed}, true
	}
	host, commands, states := textOf(config, "hn"), scalar(prefixes[0]), scalar(prefixes[2])
	if len(order)+len(topic)+len(host)+len(commands)+len(states) > maxTopicPartBytes {
		return nil, Effect{Fault: FaultTooLarge}, true
	}
	base := func(prefix string) string {
		full := strings.NewReplacer("%prefix%", prefix, "%topic%", topic, "%hostname%", host, "%id%", mac[max(0, len(mac)-6):]).Replace(order)
		return strings.Trim(full, "/")
	}
	command, telemetry := base(commands), base(states)
	lastWill := availability{
		topic: telemetry + "/LWT", online: []string{cmp.Or(clean(textOf(config, "onln")), "Online")}, subscribe: true,
	}
	if !validTopic(lastWill.topic) || !validTopic(command) {
		return nil, Effect{Fault: FaultTopic, Subject: lastWill.topic}, true
	}
	return []announcement{{
		keys: []string{mac}, device: Device{
			ID: mac, BaseTopic: telemetry, Manufacturer: "Tasmota", Name: clean(textOf(config, "dn")),
			Model: clean(textOf(config, "md")), Version: clean(textOf(config, "sw")), More: map[string]string{"MQTT_COMMAND_TOPIC": command},
		},
		availability: []availability{lastWill},
	}}, Effect{}, true
}
