package convention

import (
	"regexp"
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
	// rebirthWait is the minimum time between two commands to an edge node.
	rebirthWait = 30 * time.Second
	// commandPace is the minimum time between two rounds of commands.
	commandPace = time.Second
	// maxCommands bounds the commands of a round.
	maxCommands = 20
	// maxNodes bounds the edge nodes and their devices.
	maxNodes = 20_000
)

// sparkplug is Sparkplug B 3.0. Births and deaths are not retained, so this state survives
// new connections.
type sparkplug struct {
	rebirth bool
	nodes   map[string]*edgeNode
	// known counts the edge nodes and their devices.
	known int
	// queue has the keys of nodes to send a command to.
	queue []string
	// sent is when commands were sent last; zero for never.
	sent time.Time
}

// edgeNode is an edge node, whose key is GROUP/NODE.
type edgeNode struct {
	// alive is false after a death, for a node that has sent only data, and until a node answers
	// that was asked because messages may have been lost.
	alive bool
	// sequence is the bdSeq of the birth; a death with another one is of an earlier session.
	sequence birthSequence
	birth    birth
	devices  map[string]*edgeDevice
	asked    time.Time
}

type edgeDevice struct {
	alive bool
	birth birth
}

func newSparkplug(rebirth bool) *sparkplug {
	return &sparkplug{rebirth: rebirth, nodes: map[string]*edgeNode{}}
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

// Begin implements [Convention]. After a new connection, deaths may have been missed: edge
// nodes are asked for a birth, if that is permitted.
func (s *sparkplug) Begin(connected bool, now time.Time) {
	if !connected || !s.rebirth {
		return
	}
	for key, node := range s.nodes {
		if node.alive || now.Sub(node.asked) < rebirthWait { // the command may be lost, too
			node.alive, node.asked = false, time.Time{}
			s.ask(key, node, now)
		}
	}
}

// End implements [Convention]. What is known does not come from retained messages.
func (s *sparkplug) End() {}

// sparkplugTopic is a parsed topic.
type sparkplugTopic struct {
	kind, node, device string
	certificate        bool
}

// sparkplugForm matches the topics of edge nodes, and those of their devices.
var sparkplugForm = regexp.MustCompile(
	`^(\$sparkplug/certificates/)?spBv1\.0/([^/]+)/(?:(N[A-Z]+)/([^/]+)|(D[A-Z]+)/([^/]+)/([^/]+))$`)

func parseSparkplug(topic string) (parsed sparkplugTopic, ok bool) {
	found := sparkplugForm.FindStringSubmatch(topic)
	if found == nil {
		return sparkplugTopic{}, false
	}
	parsed = sparkplugTopic{
		kind: found[3] + found[5], node: found[2] + "/" + found[4] + found[6], device: found[7], certificate: found[1] != "",
	}
	return parsed, validID(parsed.node) && (parsed.device == "" || validID(parsed.device))
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
		if device := s.device(topic); device != nil {
			changed := device.alive
			device.alive = false
			return Effect{Devices: changed}
		}
	case "NDATA", "DDATA":
		return s.heard(topic, now)
	}
	return Effect{}
}

// device returns a device that is known, or nil.
func (s *sparkplug) device(topic sparkplugTopic) *edgeDevice {
	if node := s.nodes[topic.node]; node != nil {
		return node.devices[topic.device]
	}
	return nil
}

// room reports whether another edge node or device may be remembered, and counts it.
func (s *sparkplug) room() bool {
	if s.known >= maxNodes {
		return false
	}
	s.known++
	return true
}

// node returns an edge node, which it creates if there is room.
func (s *sparkplug) node(key string) (*edgeNode, bool) {
	if node := s.nodes[key]; node != nil {
		return node, true
	}
	if !s.room() {
		return nil, false
	}
	node := &edgeNode{devices: map[string]*edgeDevice{}}
	s.nodes[strings.Clone(key)] = node
	return node, true
}

func (s *sparkplug) born(topic sparkplugTopic, payload []byte, now time.Time) Effect {
	parsed, ok := parseBirth(payload)
	switch {
	case !ok:
		return Effect{Fault: FaultMalformed}
	case len(topic.node)+len(topic.device)+len(parsed.manufacturer)+len(parsed.model)+len(parsed.version) > maxRecordBytes:
		return Effect{Fault: FaultTooLarge}
	}
	if topic.certificate { // says who the device is; what is alive is only known if it is news
		if s.device(topic) != nil || s.nodes[topic.node] != nil && topic.device == "" {
			return Effect{}
		}
	}
	node, ok := s.node(topic.node)
	if !ok {
		return Effect{Fault: FaultTooMany}
	}
	if topic.device != "" {
		return s.deviceBorn(node, topic.device, parsed)
	}
	node.alive, node.birth, node.sequence = true, parsed, parsed.sequence
	if topic.certificate {
		node.alive, node.sequence = !s.rebirth, birthSequence{} // it may be of an earlier session: every death counts
		s.ask(topic.node, node, now)
		return Effect{Devices: true}
	}
	for _, device := range node.devices {
		device.alive = false // devices are born again after their edge node
	}
	return Effect{Devices: true}
}

func (s *sparkplug) deviceBorn(node *edgeNode, id string, parsed birth) Effect {
	device := node.devices[id]
	if device == nil {
		if !s.room() {
			return Effect{Fault: FaultTooMany}
		}
		device = &edgeDevice{}
		node.devices[strings.Clone(id)] = device
	}
	device.alive, device.birth = true, parsed
	return Effect{Devices: true}
}

func (s *sparkplug) died(topic sparkplugTopic, payload []byte) Effect {
	node := s.nodes[topic.node]
	if node == nil || !node.alive {
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

func (s *sparkplug) ask(key string, node *edgeNode, now time.Time) {
	if s.rebirth && (node.asked.IsZero() || now.Sub(node.asked) >= rebirthWait) && len(s.queue) < maxNodes {
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
	return messages
}

// Due implements [Commander].
func (s *sparkplug) Due() time.Time {
	if len(s.queue) > 0 {
		return s.sent.Add(commandPace)
	}
	return time.Time{}
}

// Devices implements [Convention]. Edge nodes are devices too.
func (s *sparkplug) Devices() []Device {
	var devices []Device
	for key, node := range s.nodes {
		group, name, _ := strings.Cut(key, "/")
		presence := Offline
		if node.alive {
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
