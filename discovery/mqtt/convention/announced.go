package convention

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// announced is the state of a convention in which a retained message announces devices, and
// messages at other topics say whether these are online.
type announced struct {
	layout        layout
	announcements records[[]announcement]
	states        records[string]
}

// layout is what distinguishes such conventions.
type layout interface {
	// filters returns the topics to subscribe to whatever is announced.
	filters() []string
	// parse returns the devices in a message. ok is false for a topic that announces none. If
	// there is a fault, and no list of devices, the message has no effect.
	parse(message Message) (devices []announcement, fault string, ok bool)
	// state returns what is kept of a message that says whether devices are online.
	state(message Message) (text string, ok bool)
	// maxPayload returns the size of the largest payload, in bytes.
	maxPayload() int
}

// announcement is what matters of the announcement of a device.
type announcement struct {
	device       Device // without Presence
	availability []availability
	// all says that all topics of availability must say so, instead of any.
	all bool
}

// availability is a topic that says whether a device is online.
type availability struct {
	topic string
	// path is the compared part of what is kept of the payload; empty for all of it.
	path string
	// online are the texts that mean online.
	online []string
	// optional says that the device is online if there is no message.
	optional bool
	// subscribe says that no filter of the layout has the topic.
	subscribe bool
}

// maxStateBytes bounds what is kept of the payload of a topic of availability.
const maxStateBytes = 1024

func newAnnounced(l layout) *announced {
	return &announced{layout: l, announcements: newRecords[[]announcement](), states: newRecords[string]()}
}

// availabilityBytes is the size of an availability without its texts.
const availabilityBytes = 128

// size returns the size of the texts that the device has chosen. Of several texts that mean
// online, it has chosen none.
func (a announcement) size() int {
	d := a.device
	bytes := len(d.ID) + len(d.BaseTopic) + len(d.Name) + len(d.Manufacturer) + len(d.Model) + len(d.Version)
	for _, value := range d.More {
		bytes += len(value)
	}
	for _, each := range a.availability {
		bytes += availabilityBytes + len(each.topic) + len(each.path) + len(each.online[0])
	}
	return bytes
}

// Filters implements [Convention].
func (a *announced) Filters() []string {
	named := map[string]bool{}
	for _, record := range a.announcements.byTopic {
		for _, device := range record.value {
			for _, each := range device.availability {
				if each.subscribe {
					named[each.topic] = true
				}
			}
		}
	}
	return append(a.layout.filters(), slices.Sorted(maps.Keys(named))...)
}

// MaxPayload implements [Convention].
func (a *announced) MaxPayload() int { return a.layout.maxPayload() }

// Begin implements [Convention].
func (a *announced) Begin(bool, time.Time) {
	a.announcements.begin()
	a.states.begin()
}

// End implements [Convention].
func (a *announced) End() {
	a.announcements.end()
	a.states.end()
}

// Apply implements [Convention]. A message may be an announcement and a state at once.
func (a *announced) Apply(message Message, _ time.Time) Effect {
	if len(message.Topic) > maxTopicBytes {
		return Effect{Fault: FaultTooLarge}
	}
	effect := a.announce(message)
	if text, ok := a.layout.state(message); ok {
		state := a.applyState(message, text)
		effect.Devices = effect.Devices || state.Devices
		effect.Fault = cmp.Or(effect.Fault, state.Fault)
	}
	return effect
}

func (a *announced) announce(message Message) Effect {
	devices, fault, ok := a.layout.parse(message)
	if !ok {
		return Effect{}
	}
	if len(message.Payload) == 0 {
		effect := a.announcements.remove(message.Topic)
		effect.Filters = effect.Devices
		return effect
	}
	bytes := 0
	kept := slices.DeleteFunc(devices, func(each announcement) bool {
		size := each.size()
		if size > maxRecordBytes {
			fault = cmp.Or(fault, FaultTooLarge)
			return true
		}
		bytes += size
		return false
	})
	if fault != "" && (devices == nil || len(kept) == 0 && len(devices) > 0) {
		return Effect{Fault: fault}
	}
	effect := a.announcements.put(message.Topic, kept, bytes)
	effect.Filters, effect.Fault = effect.Devices, cmp.Or(effect.Fault, fault)
	return effect
}

func (a *announced) applyState(message Message, text string) Effect {
	switch {
	case len(message.Payload) == 0:
		return a.states.remove(message.Topic)
	case len(text) > maxStateBytes:
		return Effect{Fault: FaultMalformed}
	}
	return a.states.put(message.Topic, text, len(text))
}

// Devices implements [Convention]. Of several announcements of one device, the one with the
// smallest topic describes it. It is online if one of them says so.
func (a *announced) Devices(time.Time) []Device {
	devices := map[string]Device{}
	for _, topic := range slices.Sorted(maps.Keys(a.announcements.byTopic)) {
		for _, each := range a.announcements.byTopic[topic].value {
			presence := a.presence(each)
			device, found := devices[each.device.ID]
			if !found {
				device, device.Presence = each.device, presence
			}
			device.Presence = min(device.Presence, presence)
			devices[device.ID] = device
		}
	}
	return slices.Collect(maps.Values(devices))
}

// presence returns whether a device is online, as Home Assistant decides it: without topics
// of availability it is; with them, a topic without a message means that it is not.
func (a *announced) presence(device announcement) Presence {
	says := func(each availability) bool {
		text, known := a.states.get(each.topic)
		if !known {
			return each.optional
		}
		if each.path != "" {
			text = lookup([]byte(text), each.path)
		}
		return slices.Contains(each.online, text)
	}
	switch {
	case len(device.availability) == 0,
		!device.all && slices.ContainsFunc(device.availability, says),
		device.all && !slices.ContainsFunc(device.availability, func(each availability) bool { return !says(each) }):
		return Online
	}
	return Offline
}
