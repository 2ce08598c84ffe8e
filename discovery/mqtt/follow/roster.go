package follow

import (
	"maps"
	"slices"
	"strings"
	"time"

	"akri.sh/akri/discovery/mqtt/convention"
	"akri.sh/akri/internal/deadline"
)

const (
	// maxDevices bounds the devices in a list. Agents accept 1000 and report in the status
	// how many more there are.
	maxDevices = 2000
	// maxMisses is how many complete lists a device must be missing from until it is gone.
	// Brokers may lose retained messages when they restart, and may drop some under load.
	maxMisses = 3
	// settleTime is the minimum time until a device that goes offline is gone. A broker
	// that stops sends the last wills of its devices before it closes the connection.
	settleTime = 2 * time.Second
	// resumeTime is how long devices may stay offline after a new connection: they must
	// connect to a restarted broker too.
	resumeTime = time.Minute
)

// roster decides which devices there are.
type roster struct {
	admit func(convention.Device) bool
	// grace is how long a device may be offline.
	grace   time.Duration
	members map[string]*member
	// connected is whether there is a connection. While there is none, no device goes.
	connected bool
	// resumed is the end of the time after a new connection in which no device goes that
	// has not been online on it.
	resumed time.Time
	// next is when expire has something to do; zero for never.
	next time.Time
	// version counts changes of the members.
	version int
	// excess is how many devices the last list had beyond maxDevices, and missing whether it lacked
	// one.
	excess  int
	missing bool
}

// member is a device that there is.
type member struct {
	device convention.Device
	// offline is since when it is offline; zero if it is online.
	offline time.Time
	// confirmed says that it has been online on this connection.
	confirmed bool
	// misses is how many complete lists in a row did not have it.
	misses int
}

func newRoster(admit func(convention.Device) bool, grace time.Duration) *roster {
	return &roster{admit: admit, grace: max(grace, settleTime), members: map[string]*member{}}
}

// connect and disconnect follow the connection.
func (r *roster) connect(now time.Time) {
	r.connected = true
	r.resumed = now.Add(resumeTime)
	for _, m := range r.members {
		m.confirmed = false
	}
	r.schedule()
}

func (r *roster) disconnect() {
	r.connected = false
	r.schedule()
}

// source says what a device's absence from an update means.
type source int

const (
	// live are the devices after a message: one that is absent has removed its announcement.
	live source = iota
	// whole are the devices of a new list of all retained messages: an absent one is missing.
	whole
	// partial are those of a list without all messages: an absent one may exist.
	partial
)

// update takes over the devices that the convention knows.
func (r *roster) update(devices []convention.Device, from source, now time.Time) {
	slices.SortFunc(devices, func(a, b convention.Device) int { return strings.Compare(a.ID, b.ID) })
	seen := make(map[string]bool, len(devices))
	r.excess, r.missing = 0, false
	r.version++
	for _, device := range devices {
		if !r.admit(device) {
			continue
		}
		seen[device.ID] = true
		r.see(device, now)
	}
	for id, each := range r.members {
		switch {
		case seen[id]:
			each.misses = 0
		case from == whole:
			each.misses++
		case from == partial:
			each.misses = max(each.misses, 1)
		}
		if each.misses >= maxMisses || from == live && !seen[id] && each.misses == 0 {
			delete(r.members, id)
		} else if each.misses > 0 {
			r.missing = true
		}
	}
	r.schedule()
}

func (r *roster) see(device convention.Device, now time.Time) {
	known, found := r.members[device.ID]
	switch {
	case found:
		known.device = device
	case device.Presence != convention.Online:
		return
	case len(r.members) >= maxDevices:
		r.excess++
		return
	default:
		known = &member{device: device}
		r.members[device.ID] = known
	}
	if device.Presence != convention.Offline { // what starts or reconfigures itself is connected
		known.offline, known.confirmed = time.Time{}, true
	} else if known.offline.IsZero() {
		known.offline = now
	}
}

// expire removes devices that have been offline for too long.
func (r *roster) expire(now time.Time) {
	if r.next.IsZero() || now.Before(r.next) {
		return
	}
	maps.DeleteFunc(r.members, func(_ string, m *member) bool {
		at := r.expiry(m)
		return !at.IsZero() && !now.Before(at)
	})
	r.version++
	r.schedule()
}

// expiry returns when a device that stays offline is gone. A zero time means never.
func (r *roster) expiry(m *member) time.Time {
	if m.offline.IsZero() || !r.connected {
		return time.Time{}
	}
	at := m.offline.Add(r.grace)
	if !m.confirmed && at.Before(r.resumed) {
		at = r.resumed
	}
	return at
}

// schedule sets when expire has something to do.
func (r *roster) schedule() {
	r.next = time.Time{}
	for _, m := range r.members {
		r.next = deadline.Earliest(r.next, r.expiry(m))
	}
}
