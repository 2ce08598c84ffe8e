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
	// parse returns the devices in a message. ok is false for a topic that announces none.
	// Without a list of devices, the message has no effect; an empty list removes them.
	parse(message Message) (devices []announcement, fault Effect, ok bool)
	// state returns what is kept of a message that says whether devices are online.
	state(message Message) (text string, ok bool)
}

// announcement is what matters of the announcement of a device, or of a part of one.
type announcement struct {
	device Device // without Presence
	// keys identify the device, beginning with its ID. Announcements that share one are of one
	// device. rank says how good the ID is: the lowest is the best.
	keys         []string
	rank         int
	availability []availability
	// all says that all topics of availability must say so, instead of any.
	all bool
}

// availability is a topic that says whether a device is online.
type availability struct {
	topic string
	// template returns the compared text; nil for what is kept of the payload.
	template *template
	// online are the texts that mean online.
	online []string
	// optional says that the device is online if there is no message.
	optional bool
	// subscribe says that no filter of the layout has the topic.
	subscribe bool
	// unknown says that the handler does not understand what it says.
	unknown bool
}

// maxStateBytes bounds what is kept of the payload of a topic of availability.
const maxStateBytes = 4096

func newAnnounced(l layout) *announced {
	return &announced{layout: l, announcements: newRecords[[]announcement](), states: newRecords[string]()}
}

// The sizes of an announcement, an availability and a template without their texts.
const (
	announcementBytes = 192
	availabilityBytes = 80
	templateBytes     = 192
)

// size returns the size of an announcement with the texts that the device has chosen. Of several
// texts that mean online, it has chosen none.
func (a announcement) size() int {
	d := a.device
	bytes := announcementBytes + len(d.ID) + len(d.BaseTopic) + len(d.Name) + len(d.Manufacturer) + len(d.Model) + len(d.Version)
	for _, value := range d.More {
		bytes += len(value)
	}
	for _, key := range a.keys {
		bytes += len(key) + 16
	}
	for _, each := range a.availability {
		bytes += availabilityBytes + len(each.topic) + len(each.online[0])
		if each.template != nil {
			bytes += templateBytes + each.template.bytes
		}
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
	text, ok := a.layout.state(message)
	var state Effect
	switch {
	case !ok:
	case len(message.Payload) == 0:
		state = a.states.remove(message.Topic)
	case len(text) > maxStateBytes:
		state.Fault = FaultMalformed
	default:
		state = a.states.put(message.Topic, text, len(text))
	}
	effect.Devices = effect.Devices || state.Devices
	effect.Fault = cmp.Or(effect.Fault, state.Fault)
	return effect
}

func (a *announced) announce(message Message) Effect {
	devices, fault, ok := a.layout.parse(message)
	if !ok {
		return Effect{}
	}
	if len(message.Payload) == 0 {
		return a.announcements.remove(message.Topic)
	}
	bytes := 0
	kept := slices.DeleteFunc(devices, func(each announcement) bool {
		size := each.size()
		if size > maxRecordBytes {
			fault.Fault = cmp.Or(fault.Fault, FaultTooLarge)
			return true
		}
		bytes += size
		return false
	})
	if devices == nil || len(kept) == 0 && len(devices) > 0 {
		if former := a.announcements.byTopic[message.Topic]; former != nil {
			former.list = a.announcements.list // it stays as it is
		}
		return fault
	}
	effect := a.announcements.put(message.Topic, kept, bytes)
	return Effect{Devices: effect.Devices, Fault: cmp.Or(effect.Fault, fault.Fault), Subject: fault.Subject}
}

// group is a device with all its announcements.
type group struct {
	device Device
	// rank is that of the announcement that describes the device.
	rank int
	says verdict
}

// verdict is what topics of availability say about a device.
type verdict int

const (
	online verdict = iota
	// unknown is a topic that the handler does not understand.
	unknown
	offline
	// silent is an announcement without such topics.
	silent
)

// Devices implements [Convention]. Of several announcements of one device, the one with the
// lowest rank and the smallest topic describes it, and others add what it lacks. It is online if
// one that has topics of availability says so, or none has any.
func (a *announced) Devices() []Device {
	var all []*announcement
	for _, topic := range slices.Sorted(maps.Keys(a.announcements.byTopic)) {
		for i := range a.announcements.byTopic[topic].value {
			all = append(all, &a.announcements.byTopic[topic].value[i])
		}
	}
	// The parent of an announcement is one of the same device; that of the last one is itself.
	parents, byKey, groups := make([]int, len(all)), map[string]int{}, map[int]*group{}
	last := func(i int) int {
		for parents[i] != i {
			parents[i] = parents[parents[i]] // which keeps the way short, however devices are chained
			i = parents[i]
		}
		return i
	}
	for i, each := range all {
		parents[i] = i
		for _, key := range each.keys {
			if other, found := byKey[key]; found {
				parents[last(i)] = last(other)
			}
			byKey[key] = i
		}
	}
	for i, each := range all {
		g := groups[last(i)]
		if g == nil {
			g = &group{says: silent, rank: -1}
			groups[last(i)] = g
		}
		g.add(each, a.says(each))
	}
	var devices []Device
	for _, g := range groups {
		devices = append(devices, g.result())
	}
	return devices
}

// add adds an announcement.
func (g *group) add(each *announcement, says verdict) {
	g.says = min(g.says, says)
	better, other := g.device, each.device
	if g.rank < 0 || each.rank < g.rank {
		g.rank, better, other = each.rank, other, better
	}
	better.Name, better.Manufacturer = cmp.Or(better.Name, other.Name), cmp.Or(better.Manufacturer, other.Manufacturer)
	better.Model, better.Version = cmp.Or(better.Model, other.Model), cmp.Or(better.Version, other.Version)
	g.device = better
}

// result returns the device. One that nobody understands counts as online, and says so.
func (g *group) result() Device {
	device := g.device
	switch g.says {
	case offline:
		device.Presence = Offline
	case unknown:
		device.More = map[string]string{"MQTT_AVAILABILITY": "unknown"} // only of Home Assistant, which has no others
	}
	return device
}

// says returns whether a device is online, as Home Assistant decides it: a topic without a
// message means that it is not.
func (a *announced) says(device *announcement) verdict {
	if len(device.availability) == 0 {
		return silent
	}
	result := offline
	if device.all {
		result = online
	}
	for _, each := range device.availability {
		says := offline
		switch state := a.states.byTopic[each.topic]; {
		case each.unknown:
			says = unknown
		case state == nil && each.optional || state != nil && slices.Contains(each.online, each.template.render(state.value)):
			says = online
		}
		if device.all {
			result = max(result, says)
		} else {
			result = min(result, says)
		}
	}
	return result
}
