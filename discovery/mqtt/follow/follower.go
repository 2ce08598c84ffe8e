package follow

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/mqtt/convention"
	"akri.sh/akri/internal/deadline"
)

const (
	// gather is how long a change waits for others, so that a burst of messages makes one
	// list, and pace is the minimum time between two lists.
	gather = 50 * time.Millisecond
	pace   = 500 * time.Millisecond
	// maxListBytes bounds a list, roughly. Agents accept 4 MiB.
	maxListBytes = 3 << 20
	// maxBatch bounds the filters in one request.
	maxBatch = 200
	// maxFilters bounds the topics that a list subscribes to. Until the next list, a
	// connection has twice as many at most.
	maxFilters = 20_000
)

// refused is the code of a filter that the broker refuses.
const refused = 0x80

// Reasons of failures, in addition to those of package convention.
const (
	// TooManyDevices is a list with more devices than fit into it.
	TooManyDevices = "too_many_devices"
	// SubscriptionRefused is a broker that refuses a topic that a device has named.
	SubscriptionRefused = "subscription_refused"
)

// Options configure a Follower.
type Options struct {
	// Convention is the state to start from.
	Convention convention.Convention
	// BrokerURL becomes a property of each device.
	BrokerURL string
	// Admit reports whether a device is wanted.
	Admit func(convention.Device) bool
	// Grace is how long a device may be offline until it is gone.
	Grace time.Duration
	// Jitter returns a duration of up to the given one, at random.
	Jitter func(time.Duration) time.Duration
	// Failed is called for each failure, with its reason and the topic or the devices concerned;
	// Scanned for each complete list.
	Failed  func(reason, subject string)
	Scanned func(began time.Time)
}

// Request is a request to the broker: one of the fields is set.
type Request struct {
	Subscribe, Unsubscribe []string
	Publish                *convention.Message
}

// Follower follows a broker. It is not safe for concurrent use.
type Follower struct {
	options Options
	roster  *roster
	// state is the convention's state.
	state convention.Convention
	// listing is a list that is being received; nil if there is none.
	listing *listing
	// relist is when the next list is due.
	relist time.Time
	// subscribed has the filters of this connection, with the number of the last list that asked
	// for their retained messages. lists counts the lists.
	subscribed map[string]int
	lists      int
	connected  bool
	// essential has the filters that the convention cannot do without.
	essential []string
	// complete says that there has been a complete list, and settled that there has been
	// one on this connection.
	complete, settled bool
	// away says that the broker has been away.
	away bool
	// dirty says that the devices may have changed, and due is when to look. refilter says
	// that the topics to subscribe to may have changed too.
	dirty, refilter bool
	due, looked     time.Time
	requests        []Request
	// sent is the last list, made from this version of the roster.
	sent      []discovery.Device
	version   int
	excessive bool
}

// New returns a Follower without a connection.
func New(options Options) *Follower {
	return &Follower{
		options: options, state: options.Convention, essential: options.Convention.Filters(),
		roster: newRoster(options.Admit, options.Grace), subscribed: map[string]int{},
	}
}

// Settled reports whether there has been a complete list on this connection.
func (f *Follower) Settled() bool { return f.settled }

// Connected is called when a connection has been made.
func (f *Follower) Connected(now time.Time) {
	f.connected = true
	f.subscribed = map[string]int{}
	f.requests = nil
	f.begin(true, now)
}

// Disconnected is called when the connection is broken, or could not be made. The devices stay.
func (f *Follower) Disconnected() {
	f.away = true
	f.connected, f.settled, f.listing, f.dirty, f.refilter, f.requests = false, false, nil, false, false, nil
	f.roster.disconnect()
}

// Message is called for each message.
func (f *Follower) Message(message convention.Message, retained bool, now time.Time) {
	effect := f.state.Apply(message, now)
	if f.listing != nil && retained {
		f.listing.heard = now
	}
	if effect.Fault != "" {
		f.options.Failed(effect.Fault, cmp.Or(effect.Subject, message.Topic))
	}
	f.refilter = f.refilter || effect.Filters
	if (effect.Devices || effect.Filters) && !f.dirty {
		f.dirty, f.due = true, now.Add(gather)
		if earliest := f.looked.Add(pace); f.due.Before(earliest) {
			f.due = earliest
		}
	}
}

// Subscribed is called for each acknowledged subscription, with the broker's code for each
// filter. It returns the filters that the broker has refused and the convention cannot do
// without.
func (f *Follower) Subscribed(filters []string, codes []byte) (needed []string) {
	for i, filter := range filters {
		switch {
		case codes[i] < refused || filter != "" && filter[0] == '$': // the broker's own topics may be missing
		case slices.Contains(f.essential, filter):
			needed = append(needed, filter)
		default:
			f.options.Failed(SubscriptionRefused, filter)
		}
	}
	return needed
}

// Advance does what is due. An error ends the connection.
func (f *Follower) Advance(now time.Time) error {
	if !f.connected {
		return nil
	}
	f.command(now)
	if f.dirty && !now.Before(f.due) {
		f.dirty, f.looked = false, now
		if f.settled { // on a new connection, the state is of the former one until the list is complete
			f.roster.update(f.state.Devices(now), live, now)
		}
		f.resubscribe(now)
	}
	f.roster.expire(now)
	return f.advanceListing(now)
}

// resubscribe subscribes to topics that devices have named.
func (f *Follower) resubscribe(now time.Time) {
	if !f.refilter {
		return
	}
	var added []string
	for _, filter := range f.filters() {
		if f.subscribed[filter] != f.lists {
			added = append(added, filter)
		}
	}
	if len(f.subscribed)+len(added) > 2*maxFilters {
		f.relist = now // which ends the subscriptions that are no longer needed
		return
	}
	f.refilter = false
	f.subscribe(added)
}

// filters returns the topics to subscribe to.
func (f *Follower) filters() []string {
	filters := f.state.Filters()
	if len(filters) > maxFilters {
		f.options.Failed(convention.FaultTooMany, filters[maxFilters])
		filters = filters[:maxFilters]
	}
	return filters
}

// command sends commands to devices, and looks at the devices when an answer is overdue.
func (f *Follower) command(now time.Time) {
	commander, ok := f.state.(convention.Commander)
	if !ok {
		return
	}
	if due := commander.Due(); due.IsZero() || now.Before(due) {
		return
	}
	for _, message := range commander.Commands(now) {
		f.requests = append(f.requests, Request{Publish: &message})
	}
	f.dirty, f.due = true, now
}

func (f *Follower) subscribe(filters []string) {
	if f.listing != nil && len(filters) > 0 {
		f.listing.answered = false
	}
	for batch := range slices.Chunk(filters, maxBatch) {
		for _, filter := range batch {
			f.subscribed[filter] = f.lists
		}
		f.requests = append(f.requests, Request{Subscribe: batch})
	}
}

func (f *Follower) unsubscribe(filters []string) {
	for batch := range slices.Chunk(filters, maxBatch) {
		f.requests = append(f.requests, Request{Unsubscribe: batch})
	}
}

// Requests returns the requests to send, and forgets them.
func (f *Follower) Requests() []Request {
	requests := f.requests
	f.requests = nil
	return requests
}

// Next returns when Advance has something to do; zero for never.
func (f *Follower) Next() time.Time {
	if !f.connected {
		return time.Time{}
	}
	next := f.roster.next
	if f.dirty {
		next = deadline.Earliest(next, f.due)
	}
	if f.listing != nil {
		next = deadline.Earliest(next, f.listing.next())
	} else {
		next = deadline.Earliest(next, f.relist)
	}
	if commander, ok := f.state.(convention.Commander); ok {
		next = deadline.Earliest(next, commander.Due())
	}
	return next
}

// List returns the list of devices, if it differs from what it returned before.
func (f *Follower) List() (list []discovery.Device, changed bool) {
	if !f.complete || f.sent != nil && f.version == f.roster.version {
		return nil, false
	}
	f.version = f.roster.version
	list = make([]discovery.Device, 0, len(f.roster.members))
	bytes, excess := 0, f.roster.excess
	for _, id := range slices.Sorted(maps.Keys(f.roster.members)) {
		device := f.describe(f.roster.members[id].device)
		if bytes += footprint(device); bytes > maxListBytes {
			excess++
			continue
		}
		list = append(list, device)
	}
	if excess > 0 && !f.excessive {
		f.options.Failed(TooManyDevices, "")
	}
	f.excessive = excess > 0
	if f.sent != nil && reflect.DeepEqual(list, f.sent) {
		return nil, false
	}
	f.sent = list
	return list, true
}

// describe returns a device as agents know it.
func (f *Follower) describe(d convention.Device) discovery.Device {
	properties := map[string]string{
		"MQTT_BROKER_URL": f.options.BrokerURL, "MQTT_BASE_TOPIC": d.BaseTopic, "MQTT_DEVICE_ID": d.ID,
	}
	for name, value := range map[string]string{
		"MQTT_DEVICE_NAME": d.Name, "MQTT_DEVICE_MANUFACTURER": d.Manufacturer, "MQTT_DEVICE_MODEL": d.Model,
		"MQTT_DEVICE_SW_VERSION": d.Version,
	} {
		if value != "" {
			properties[name] = value
		}
	}
	maps.Copy(properties, d.More)
	return discovery.Device{ID: d.ID, Properties: properties}
}

// footprint returns the size of a device in a list, roughly.
func footprint(device discovery.Device) int {
	size := len(device.ID) + 16
	for name, value := range device.Properties {
		size += len(name) + len(value) + 8
	}
	return size
}
