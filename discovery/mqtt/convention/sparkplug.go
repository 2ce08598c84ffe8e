package convention

import (
	"slices"
	"strings"
	"time"
)

// Sparkplug's own topics, and those where a Sparkplug-aware broker retains births.
const (
	sparkplugPrefix    = "spBv1.0/"
	certificatesPrefix = "$sparkplug/certificates/"
)

const (
	// rebirthWait is how long an edge node has to answer a command, and the minimum time
	// between two commands to one.
	rebirthWait = 30 * time.Second
	// commandPace is the minimum time between two rounds of commands.
	commandPace = time.Second
	// maxCommands bounds the commands of a round.
	maxCommands = 20
	// maxNodeDevices bounds the devices of an edge node.
	maxNodeDevices = 10_000
)

// sparkplug is Sparkplug B 3.0. Births and deaths are not retained, so this state survives
// new connections.
type sparkplug struct {
	rebirth bool
	nodes   records[*edgeNode]
	// queue has the keys of nodes to send a command to.
	queue []string
	// sent is when commands were sent last, and overdue when answers are; zero for never.
	sent, overdue time.Time
}

// edgeNode is an edge node, whose key is GROUP/NODE.
type edgeNode struct {
	// alive is false after a death, and for a node that has sent only data.
	alive bool
	// sequence is the bdSeq of the birth; a death with another one is of an earlier session.
	sequence birthSequence
	birth    birth
	devices  map[string]*edgeDevice
	// doubted is when messages may have been lost; zero if the node was born since then.
	doubted time.Time
	asked   time.Time
	size    int
}

type edgeDevice struct {
	alive bool
	birth birth
}

func newSparkplug(rebirth bool) *sparkplug {
	return &sparkplug{rebirth: rebirth, nodes: newRecords[*edgeNode]()}
}

// Filters implements [Convention]. Data is only of interest to find edge nodes that have
// to be asked for a birth.
func (s *sparkplug) Filters() []string {
	filters := []string{
		sparkplugPrefix + "+/NBIRTH/+", sparkplugPrefix + "+/NDEATH/+", sparkplugPrefix + "+/DBIRTH/+/+", sparkplugPrefix + "+/DDEATH/+/+",
		certificatesPrefix + sparkplugPrefix + "+/NBIRTH/+", certificatesPrefix + sparkplugPrefix + "+/DBIRTH/+/+",
	}
	if s.rebirth {
		filters = append(filters, sparkplugPrefix+"+/NDATA/+", sparkplugPrefix+"+/DDATA/+/+")
	}
	return filters
}

// MaxPayload implements [Convention].
func (s *sparkplug) MaxPayload() int { return maxPayload }

// Bytes implements [Convention].
func (s *sparkplug) Bytes() int { return s.nodes.memory() }

// Renew implements [Convention]. After a new connection, deaths may have been missed: edge
// nodes are asked for a birth, if that is permitted.
func (s *sparkplug) Renew(connected bool, now time.Time) Convention {
	if connected && s.rebirth {
		for key, record := range s.nodes.byTopic {
			if record.value.alive {
				s.doubt(key, record.value, now)
			}
		}
	}
	return s
}

// sparkplugTopic is a parsed topic.
type sparkplugTopic struct {
	kind, node, device string
	certificate        bool
}

func parseSparkplug(topic string) (parsed sparkplugTopic, ok bool) {
	rest, certificate := strings.CutPrefix(topic, certificatesPrefix)
	rest, ok = strings.CutPrefix(rest, sparkplugPrefix)
	levels := strings.SplitN(rest, "/", 5)
	if !ok || len(levels) < 3 || len(levels) > 4 {
		return sparkplugTopic{}, false
	}
	parsed = sparkplugTopic{kind: levels[1], node: levels[0] + "/" + levels[2], certificate: certificate}
	isDevice := strings.HasPrefix(parsed.kind, "D")
	if len(levels) == 4 {
		parsed.device = levels[3]
	}
	return parsed, isDevice == (len(levels) == 4) && validID(parsed.node) && !(isDevice && !validID(parsed.device)) &&
		levels[0] != "" && levels[2] != ""
}

// Apply implements [Convention].
func (s *sparkplug) Apply(message Message, now time.Time) Effect {
	topic, ok := parseSparkplug(message.Topic)
	if !ok || len(message.Payload) == 0 && topic.certificate {
		return Effect{}
	}
	switch topic.kind {
	case "NBIRTH", "DBIRTH":
		return s.born(topic, message.Payload, now)
	case "NDEATH":
		return s.died(topic, message.Payload)
	case "DDEATH":
		if node, found := s.nodes.get(topic.node); found && node.devices[topic.device] != nil {
			changed := node.devices[topic.device].alive
			node.devices[topic.device].alive = false
			return Effect{Devices: changed}
		}
	case "NDATA", "DDATA":
		return s.heard(topic, now)
	}
	return Effect{}
}

// node returns an edge node, which it creates if there is room.
func (s *sparkplug) node(key string) (*edgeNode, bool) {
	if node, found := s.nodes.get(key); found {
		return node, true
	}
	key = strings.Clone(key)
	node := &edgeNode{devices: map[string]*edgeDevice{}}
	return node, s.nodes.put(key, node, 0)
}

func (s *sparkplug) born(topic sparkplugTopic, payload []byte, now time.Time) Effect {
	parsed, ok := parseBirth(payload)
	if !ok {
		return Effect{Fault: FaultMalformed}
	}
	if topic.certificate { // says who the device is; what is alive is only known if it is news
		if node, found := s.nodes.get(topic.node); found && (topic.device == "" || node.devices[topic.device] != nil) {
			return Effect{}
		}
	}
	node, ok := s.node(topic.node)
	if !ok {
		return Effect{Fault: FaultTooMany}
	}
	if topic.device != "" {
		return s.deviceBorn(node, topic, parsed)
	}
	size := node.size + parsed.size() - node.birth.size()
	if !s.nodes.put(topic.node, node, size) {
		return Effect{Fault: FaultTooMany}
	}
	node.size = size
	node.alive, node.birth, node.sequence, node.doubted = true, parsed, parsed.sequence, time.Time{}
	if topic.certificate {
		node.sequence = birthSequence{} // it may be of an earlier session: every death counts
		if s.rebirth {
			s.doubt(topic.node, node, now)
		}
		return Effect{Devices: true}
	}
	for _, device := range node.devices {
		device.alive = false // devices are born again after their edge node
	}
	return Effect{Devices: true}
}

func (s *sparkplug) deviceBorn(node *edgeNode, topic sparkplugTopic, parsed birth) Effect {
	device, found := node.devices[topic.device]
	if !found {
		device = &edgeDevice{}
	}
	size := node.size + parsed.size() - device.birth.size()
	if !found {
		size += len(topic.device) + recordOverhead
	}
	if !found && len(node.devices) >= maxNodeDevices || !s.nodes.put(topic.node, node, size) {
		return Effect{Fault: FaultTooMany}
	}
	node.size = size
	device.alive, device.birth = true, parsed
	if !found {
		node.devices[strings.Clone(topic.device)] = device
	}
	return Effect{Devices: true}
}

func (s *sparkplug) died(topic sparkplugTopic, payload []byte) Effect {
	node, found := s.nodes.get(topic.node)
	if !found || !node.alive {
		return Effect{}
	}
	parsed, ok := parseBirth(payload)
	if ok && parsed.sequence.known && node.sequence.known && parsed.sequence.value != node.sequence.value {
		return Effect{} // the last will of an earlier session
	}
	node.alive = false
	return Effect{Devices: true}
}

// heard notices edge nodes whose birth is unknown.
func (s *sparkplug) heard(topic sparkplugTopic, now time.Time) Effect {
	node, ok := s.node(topic.node)
	if !ok {
		return Effect{Fault: FaultTooMany}
	}
	if device, found := node.devices[topic.device]; !node.alive || topic.device != "" && (!found || !device.alive) {
		s.ask(topic.node, node, now)
	}
	return Effect{}
}

// doubt makes a node offline unless it is born soon.
func (s *sparkplug) doubt(key string, node *edgeNode, now time.Time) {
	node.doubted, node.asked, s.overdue = now, time.Time{}, now.Add(rebirthWait)
	s.ask(key, node, now)
}

func (s *sparkplug) ask(key string, node *edgeNode, now time.Time) {
	if s.rebirth && (node.asked.IsZero() || now.Sub(node.asked) >= rebirthWait) && len(s.queue) < maxTopics {
		node.asked = now
		s.queue = append(s.queue, key)
	}
}

// Commands implements [Commander].
func (s *sparkplug) Commands(now time.Time) []Message {
	count := min(len(s.queue), maxCommands)
	var messages []Message
	for _, key := range s.queue[:count] {
		group, node, _ := strings.Cut(key, "/")
		messages = append(messages, Message{Topic: sparkplugPrefix + group + "/NCMD/" + node, Payload: rebirthCommand(now)})
	}
	s.queue, s.sent = slices.Delete(s.queue, 0, count), now
	if !now.Before(s.overdue) {
		s.overdue = time.Time{}
	}
	return messages
}

// Due implements [Commander].
func (s *sparkplug) Due() time.Time {
	if len(s.queue) > 0 {
		return s.sent.Add(commandPace)
	}
	return s.overdue
}

// Devices implements [Convention]. Edge nodes are devices too.
func (s *sparkplug) Devices(now time.Time) []Device {
	var devices []Device
	for key, record := range s.nodes.byTopic {
		node := record.value
		group, name, _ := strings.Cut(key, "/")
		presence := Offline
		if node.alive && (node.doubted.IsZero() || now.Sub(node.doubted) < rebirthWait) {
			presence = Online
		}
		if node.birth.born {
			devices = append(devices, node.birth.device(key, sparkplugPrefix+group+"/+/"+name, name, presence))
		}
		for id, device := range node.devices {
			devicePresence := presence
			if !device.alive {
				devicePresence = Offline
			}
			devices = append(devices, device.birth.device(key+"/"+id, sparkplugPrefix+group+"/+/"+name+"/"+id, id, devicePresence))
		}
	}
	return devices
}
