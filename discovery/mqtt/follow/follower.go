package follow

import (
	"cmp"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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
	// maxFilters bounds the topics that a list subscribes to. A connection has twice as many at
	// most. Beyond, the next one subscribes only to those that are still needed.
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
	// dirty says that the devices may have changed, and due is when to look.
	dirty       bool
	due, looked time.Time
	// unsubscribed are filters to subscribe to, and unsent are messages to publish.
	unsubscribed [][]string
	unsent       []convention.Message
	// sent is the last list, made from this version of the roster.
	sent    []discovery.Device
	version int
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
	f.begin(true, now)
}

// Disconnected is called when the connection is broken, or could not be made. The devices stay.
func (f *Follower) Disconnected() {
	f.connected, f.settled, f.listing, f.dirty, f.unsubscribed, f.unsent = false, false, nil, false, nil, nil
	f.roster.disconnect()
}

// Message is called for each message.
func (f *Follower) Message(message convention.Message, retained bool, now time.Time) {
	if !utf8.ValidString(message.Topic) {
		f.options.Failed(convention.FaultTopic, message.Topic)
		return
	}
	effect := f.state.Apply(message, now)
	if f.listing != nil && retained {
		f.listing.heard = now
	}
	if effect.Fault != "" {
		subject := cmp.Or(effect.Subject, message.Topic)
		if effect.Fault == convention.FaultTooMany {
			subject = f.options.BrokerURL // each topic beyond the bound is another one
		}
		f.options.Failed(effect.Fault, subject)
	}
	if effect.Devices && !f.dirty {
		f.dirty, f.due = true, now.Add(gather)
		if earliest := f.looked.Add(pace); f.due.Before(earliest) {
			f.due = earliest
		}
	}
	if f.listing != nil && retained && !f.settled {
		f.due = now.Add(gather) // a broker may not read while it sends
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
			f.roster.update(f.state.Devices(), live, now)
		}
		f.resubscribe()
	}
	f.roster.expire(now)
	if len(f.subscribed) > 2*maxFilters {
		return errors.New("connecting again, because devices have named too many topics")
	}
	return f.advanceListing(now)
}

// resubscribe subscribes to topics that devices have named.
func (f *Follower) resubscribe() {
	var added []string
	for _, filter := range f.filters() {
		if f.subscribed[filter] != f.lists {
			added = append(added, filter)
		}
	}
	f.subscribe(added)
}

// filters returns the topics to subscribe to.
func (f *Follower) filters() []string {
	filters := f.state.Filters()
	if len(filters) > maxFilters {
		f.options.Failed(convention.FaultTooMany, f.options.BrokerURL)
		filters = filters[:maxFilters]
	}
	return filters
}

// command sends commands to devices.
func (f *Follower) command(now time.Time) {
	if commander, ok := f.state.(convention.Commander); ok && !commander.Due().IsZero() && !now.Before(commander.Due()) {
		f.unsent = append(f.unsent, commander.Commands(now)...)
	}
}

func (f *Follower) subscribe(filters []string) {
	if f.listing != nil && len(filters) > 0 {
		f.listing.answered = false
	}
	for batch := range slices.Chunk(filters, maxBatch) {
		for _, filter := range batch {
			f.subscribed[filter] = f.lists
		}
		f.unsubscribed = append(f.unsubscribed, batch)
	}
}

// Requests returns what to subscribe to, a request for each list, and what to publish, and
// forgets both.
func (f *Follower) Requests() (subscribe [][]string, publish []convention.Message) {
	subscribe, publish = f.unsubscribed, f.unsent
	f.unsubscribed, f.unsent = nil, nil
	return subscribe, publish
}

// Next returns when Advance has something to do; zero for never, without a connection.
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
	if excess > 0 {
		f.options.Failed(TooManyDevices, f.options.BrokerURL)
	}
	if f.sent != nil && reflect.DeepEqual(list, f.sent) {
		return nil, false
	}
	f.sent = list
	return list, true
}

// describe returns a device as agents know it.
func (f *Follower) describe(d convention.Device) discovery.Device {
	properties := map[string]string{
		"MQTT_BROKER_URL": f.options.BrokerURL, "MQTT_BASE_TOPIC": d.BaseTopic, "MQTT_DEVICE_ID": d.ID, "MQTT_DEVICE_NAME": d.Name,
		"MQTT_DEVICE_MANUFACTURER": d.Manufacturer, "MQTT_DEVICE_MODEL": d.Model, "MQTT_DEVICE_SW_VERSION": d.Version,

		discovery.DisplayName: strings.Trim(cmp.Or(d.Name, d.ID)+", "+strings.TrimSpace(d.Manufacturer+" "+d.Model), ", "),
	}
	maps.Copy(properties, d.More)
	maps.DeleteFunc(properties, func(_, value string) bool { return value == "" })
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
