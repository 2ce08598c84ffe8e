package convention

import (
	"slices"
	"strings"
	"time"
)

// homeAssistant is Home Assistant's MQTT discovery: a retained configuration for each
// entity, or for each device, which names topics of availability.
type homeAssistant struct {
	prefix  string
	configs records[entity]
	states  records[string]
	// watched counts the configurations with each topic of availability.
	watched map[string]int
}

// entity is what matters of a configuration, which is about an entity or about a device.
type entity struct {
	id                                 string
	name, manufacturer, model, version string
	base                               string
	availability                       []availability
	// all says that all topics of availability must say so, instead of any.
	all bool
}

// availability is a topic that says whether an entity is available.
type availability struct {
	topic, online string
	// path is the compared part of the payload; nil for all of it.
	path []string
}

func (e entity) size() int {
	size := len(e.id) + len(e.name) + len(e.manufacturer) + len(e.model) + len(e.version) + len(e.base)
	for _, each := range e.availability {
		size += 2*len(each.topic) + len(each.online) + recordOverhead
		for _, element := range each.path {
			size += len(element) + elementOverhead
		}
	}
	return size
}

func (e entity) equal(other entity) bool {
	return e.id == other.id && e.name == other.name && e.manufacturer == other.manufacturer && e.model == other.model &&
		e.version == other.version && e.base == other.base && e.all == other.all &&
		slices.EqualFunc(e.availability, other.availability, func(a, b availability) bool {
			return a.topic == b.topic && a.online == b.online && slices.Equal(a.path, b.path)
		})
}

func newHomeAssistant(prefix string) *homeAssistant {
	return &homeAssistant{prefix: prefix, configs: newRecords[entity](), states: newRecords[string](), watched: map[string]int{}}
}

// Filters implements [Convention].
func (h *homeAssistant) Filters() []string {
	filters := []string{h.prefix + "/+/+/config", h.prefix + "/+/+/+/config"}
	for topic := range h.watched {
		filters = append(filters, topic)
	}
	return filters
}

// MaxPayload implements [Convention].
func (h *homeAssistant) MaxPayload() int { return maxPayload }

// Bytes implements [Convention].
func (h *homeAssistant) Bytes() int { return h.configs.memory() + h.states.memory() }

// Renew implements [Convention].
func (h *homeAssistant) Renew(bool, time.Time) Convention { return newHomeAssistant(h.prefix) }

// Apply implements [Convention].
func (h *homeAssistant) Apply(message Message, _ time.Time) Effect {
	if h.isConfig(message.Topic) {
		return h.applyConfig(message)
	}
	if h.watched[message.Topic] == 0 {
		return Effect{}
	}
	if len(message.Payload) == 0 {
		return Effect{Devices: h.states.remove(message.Topic)}
	}
	if len(message.Payload) > maxStateBytes {
		return Effect{Fault: FaultMalformed}
	}
	state := string(message.Payload)
	former, found := h.states.get(message.Topic)
	switch {
	case found && former == state:
		return Effect{}
	case !h.states.put(message.Topic, state, len(state)):
		return Effect{Fault: FaultTooMany}
	}
	return Effect{Devices: true}
}

// maxStateBytes bounds payloads of topics of availability, which are kept because a
// template decides what they mean.
const maxStateBytes = 1024

// maxWatched bounds the topics of availability, which are subscriptions.
const maxWatched = 20_000

func (h *homeAssistant) isConfig(topic string) bool {
	rest, ok := strings.CutPrefix(topic, h.prefix+"/")
	rest, isConfig := strings.CutSuffix(rest, "/config")
	levels := strings.Count(rest, "/")
	return ok && isConfig && (levels == 1 || levels == 2)
}

func (h *homeAssistant) applyConfig(message Message) Effect {
	former, existed := h.configs.get(message.Topic)
	if len(message.Payload) == 0 {
		h.configs.remove(message.Topic)
		return Effect{Devices: existed, Filters: h.unwatch(former) && existed}
	}
	base := strings.TrimSuffix(message.Topic, "/config")
	config, fault := parseEntity(message.Payload, base)
	switch {
	case fault == FaultMalformed:
		return Effect{Fault: fault}
	case existed && config.equal(former):
		return Effect{}
	case len(h.watched) > maxWatched || !h.configs.put(message.Topic, config, config.size()):
		return Effect{Fault: FaultTooMany}
	}
	filters := false
	for _, each := range config.availability {
		h.watched[each.topic]++
		filters = filters || h.watched[each.topic] == 1
	}
	return Effect{Devices: true, Filters: h.unwatch(former) || filters, Fault: fault}
}

// unwatch removes the topics that no configuration has any longer, and reports whether
// there are any.
func (h *homeAssistant) unwatch(config entity) bool {
	removed := false
	for _, each := range config.availability {
		if h.watched[each.topic]--; h.watched[each.topic] <= 0 {
			delete(h.watched, each.topic)
			h.states.remove(each.topic)
			removed = true
		}
	}
	return removed
}

// Devices implements [Convention]. A device is online if one of its entities is available.
func (h *homeAssistant) Devices(time.Time) []Device {
	devices := newMerger(len(h.configs.byTopic))
	known := map[string]string{}
	for topic, record := range h.configs.byTopic {
		e := record.value
		presence := Offline
		if h.available(e, known) {
			presence = Online
		}
		devices.add(topic, Device{
			ID: e.id, Presence: presence, BaseTopic: e.base,
			Name: e.name, Manufacturer: e.manufacturer, Model: e.model, Version: e.version,
		})
	}
	return devices.list()
}

// available reports whether an entity is available, as Home Assistant decides it: without
// topics of availability it is; with them, a topic without a message means that it is not.
// known has the states that were looked up already, because many entities share a topic.
func (h *homeAssistant) available(e entity, known map[string]string) bool {
	if len(e.availability) == 0 {
		return true
	}
	some, every := false, true
	for _, each := range e.availability {
		key := each.topic + "\x00" + strings.Join(each.path, "\x00")
		text, ok := known[key]
		if !ok {
			payload, _ := h.states.get(each.topic)
			text = lookup([]byte(payload), each.path)
			known[key] = text
		}
		online := text == each.online
		some, every = some || online, every && online
	}
	// Which message is the latest is unknown for retained ones, so the mode "latest" is
	// treated like "any".
	if e.all {
		return every
	}
	return some
}
