package convention

import (
	"slices"
	"strings"
	"time"

	"akri.sh/akri/discovery/mqtt/details"
)

// topics are devices that the author of a Configuration describes.
type topics struct {
	layout    *details.Layout
	announces records[announcement]
	states    records[string]
	// stateFilter is the topic filter of states, by level; nil if there is none.
	stateFilter []string
}

// announcement is what matters of a message at a topic that announces a device.
type announcement struct {
	id    string
	state string // topic of the device's state
	// properties is sorted by name.
	properties []property
}

type property struct{ name, value string }

func newTopics(layout *details.Layout) *topics {
	t := &topics{layout: layout, announces: newRecords[announcement](), states: newRecords[string]()}
	if len(layout.Is) > 0 {
		t.stateFilter = strings.Split(layout.Online.Filter(), "/")
	}
	return t
}

// Filters implements [Convention].
func (t *topics) Filters() []string {
	filters := []string{strings.Join(t.layout.Announce, "/")}
	if t.stateFilter != nil {
		if filter := strings.Join(t.stateFilter, "/"); filter != filters[0] {
			filters = append(filters, filter)
		}
	}
	return filters
}

// MaxPayload implements [Convention].
func (t *topics) MaxPayload() int { return maxPayload }

// Bytes implements [Convention].
func (t *topics) Bytes() int { return t.announces.memory() + t.states.memory() }

// Renew implements [Convention].
func (t *topics) Renew(bool, time.Time) Convention { return newTopics(t.layout) }

// match returns the levels of a topic that + stands for.
func match(filter []string, topic string) (levels []string, ok bool) {
	for i, level := range filter {
		text, rest, more := strings.Cut(topic, "/")
		if level == "+" {
			levels = append(levels, text)
		} else if level != text {
			return nil, false
		}
		if more != (i < len(filter)-1) {
			return nil, false
		}
		topic = rest
	}
	return levels, true
}

// Apply implements [Convention]. A message may be an announcement and a state at once.
func (t *topics) Apply(message Message, _ time.Time) Effect {
	var effect Effect
	if levels, ok := match(t.layout.Announce, message.Topic); ok {
		effect = t.applyAnnouncement(message, levels)
	}
	if t.stateFilter == nil {
		return effect
	}
	if _, ok := match(t.stateFilter, message.Topic); ok {
		state := t.applyState(message)
		effect.Devices = effect.Devices || state.Devices
		if effect.Fault == "" {
			effect.Fault = state.Fault
		}
	}
	return effect
}

func (t *topics) applyAnnouncement(message Message, levels []string) Effect {
	if len(message.Payload) == 0 {
		return Effect{Devices: t.announces.remove(message.Topic)}
	}
	value := func(e details.Expression) string {
		path, ok := e.Path()
		if !ok {
			return e.Text(levels)
		}
		return lookup(message.Payload, path)
	}
	announced := announcement{id: strings.Clone(value(t.layout.ID))}
	if !validID(announced.id) {
		return Effect{Devices: t.announces.remove(message.Topic), Fault: FaultMalformed}
	}
	size := len(announced.id)
	if t.stateFilter != nil {
		announced.state = t.layout.Online.Text(levels)
		size += len(announced.state)
	}
	for name, expression := range t.layout.Properties {
		if text := clean(value(expression)); text != "" {
			announced.properties = append(announced.properties, property{name, text})
			size += len(name) + len(text)
		}
	}
	slices.SortFunc(announced.properties, func(a, b property) int { return strings.Compare(a.name, b.name) })
	former, found := t.announces.get(message.Topic)
	switch {
	case found && former.id == announced.id && slices.Equal(former.properties, announced.properties):
		return Effect{}
	case !t.announces.put(message.Topic, announced, size):
		return Effect{Fault: FaultTooMany}
	}
	return Effect{Devices: true}
}

func (t *topics) applyState(message Message) Effect {
	path, _ := t.layout.State.Path()
	text := clean(lookup(message.Payload, path))
	former, found := t.states.get(message.Topic)
	switch {
	case len(message.Payload) == 0:
		return Effect{Devices: t.states.remove(message.Topic)}
	case found && former == text:
		return Effect{}
	case !t.states.put(message.Topic, text, len(text)):
		return Effect{Fault: FaultTooMany}
	}
	return Effect{Devices: true}
}

// Devices implements [Convention].
func (t *topics) Devices(time.Time) []Device {
	devices := newMerger(len(t.announces.byTopic))
	for topic, record := range t.announces.byTopic {
		device := Device{ID: record.value.id, BaseTopic: topic}
		if t.stateFilter != nil {
			if state, ok := t.states.get(record.value.state); !ok || !slices.Contains(t.layout.Is, state) {
				device.Presence = Offline
			}
		}
		for _, each := range record.value.properties {
			if device.More == nil {
				device.More = map[string]string{}
			}
			device.More[each.name] = each.value
		}
		devices.add(topic, device)
	}
	return devices.list()
}
