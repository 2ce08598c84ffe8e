package convention

import (
	"strings"
	"time"
)

// tasmota is the discovery of Tasmota: a retained configuration for each device, and its
// last will.
type tasmota struct {
	prefix  string
	configs records[tasmotaConfig]
	states  records[string]
	// willTopics counts the configurations with each topic of a last will.
	willTopics map[string]int
}

// tasmotaConfig is what matters of a configuration.
type tasmotaConfig struct {
	id, name, model, version string
	// telemetry and command are the device's base topics.
	telemetry, command string
	// online is the payload of the last will's topic while the device is online.
	online string
}

func newTasmota(prefix string) *tasmota {
	return &tasmota{
		prefix: prefix, configs: newRecords[tasmotaConfig](), states: newRecords[string](), willTopics: map[string]int{},
	}
}

func (c tasmotaConfig) willTopic() string { return c.telemetry + "/LWT" }

func (c tasmotaConfig) size() int {
	return len(c.id) + len(c.name) + len(c.model) + len(c.version) + 2*len(c.telemetry) + len(c.command) + len(c.online)
}

// Filters implements [Convention].
func (t *tasmota) Filters() []string {
	filters := []string{t.prefix + "/+/config"}
	for topic := range t.willTopics {
		filters = append(filters, topic)
	}
	return filters
}

// MaxPayload implements [Convention].
func (t *tasmota) MaxPayload() int { return maxPayload }

// Bytes implements [Convention].
func (t *tasmota) Bytes() int { return t.configs.memory() + t.states.memory() }

// Renew implements [Convention].
func (t *tasmota) Renew(bool, time.Time) Convention { return newTasmota(t.prefix) }

// Apply implements [Convention].
func (t *tasmota) Apply(message Message, _ time.Time) Effect {
	if t.isConfig(message.Topic) {
		return t.applyConfig(message)
	}
	if t.willTopics[message.Topic] == 0 {
		return Effect{}
	}
	state := clean(string(message.Payload))
	if former, _ := t.states.get(message.Topic); former == state {
		return Effect{}
	}
	if state == "" {
		return Effect{Devices: t.states.remove(message.Topic)}
	}
	if !t.states.put(message.Topic, state, len(state)) {
		return Effect{Fault: FaultTooMany}
	}
	return Effect{Devices: true}
}

func (t *tasmota) isConfig(topic string) bool {
	rest, ok := strings.CutPrefix(topic, t.prefix+"/")
	id, last, found := strings.Cut(rest, "/")
	return ok && found && last == "config" && validID(id)
}

func (t *tasmota) applyConfig(message Message) Effect {
	former, existed := t.configs.get(message.Topic)
	if len(message.Payload) == 0 {
		t.configs.remove(message.Topic)
		t.forget(former, existed)
		return Effect{Devices: existed, Filters: existed}
	}
	config, ok := parseTasmota(message.Payload)
	switch {
	case !ok:
		return Effect{Fault: FaultMalformed}
	case existed && former == config:
		return Effect{}
	case !t.configs.put(message.Topic, config, config.size()):
		return Effect{Fault: FaultTooMany}
	}
	t.forget(former, existed)
	t.willTopics[config.willTopic()]++
	return Effect{Devices: true, Filters: !existed || former.willTopic() != config.willTopic()}
}

// forget removes the topic of a last will that no configuration has any longer.
func (t *tasmota) forget(config tasmotaConfig, existed bool) {
	if !existed {
		return
	}
	topic := config.willTopic()
	if t.willTopics[topic]--; t.willTopics[topic] <= 0 {
		delete(t.willTopics, topic)
		t.states.remove(topic)
	}
}

func parseTasmota(payload []byte) (tasmotaConfig, bool) {
	var fields struct {
		MAC       string   `json:"mac"`
		Name      string   `json:"dn"`
		Host      string   `json:"hn"`
		Model     string   `json:"md"`
		Version   string   `json:"sw"`
		Online    string   `json:"onln"`
		Topic     string   `json:"t"`
		FullTopic string   `json:"ft"`
		Prefixes  []string `json:"tp"`
	}
	if !decode(payload, &fields) || !validID(fields.MAC) || fields.Topic == "" || fields.FullTopic == "" || len(fields.Prefixes) < 3 {
		return tasmotaConfig{}, false
	}
	expand := func(prefix string) string {
		id := fields.MAC
		if len(id) > 6 {
			id = id[len(id)-6:]
		}
		return strings.Trim(strings.NewReplacer("%prefix%", prefix, "%topic%", fields.Topic, "%hostname%", fields.Host, "%id%", id).
			Replace(fields.FullTopic), "/")
	}
	config := tasmotaConfig{
		id: strings.Clone(fields.MAC), name: clean(fields.Name), model: clean(fields.Model), version: clean(fields.Version),
		command: expand(fields.Prefixes[0]), telemetry: expand(fields.Prefixes[2]), online: clean(fields.Online),
	}
	if config.online == "" {
		config.online = "Online"
	}
	return config, validTopic(config.willTopic()) && validTopic(config.command)
}

// Devices implements [Convention].
func (t *tasmota) Devices(time.Time) []Device {
	devices := newMerger(len(t.configs.byTopic))
	for topic, record := range t.configs.byTopic {
		config := record.value
		presence := Offline
		if state, _ := t.states.get(config.willTopic()); state == config.online {
			presence = Online
		}
		devices.add(topic, Device{
			ID: config.id, Presence: presence, BaseTopic: config.telemetry,
			Name: config.name, Manufacturer: "Tasmota", Model: config.model, Version: config.version,
			More: map[string]string{"MQTT_COMMAND_TOPIC": config.command},
		})
	}
	return devices.list()
}
