package convention

import (
	"strings"
	"unicode/utf8"
)

// maxTopicBytes bounds the topics that devices name. MQTT allows 64 KiB.
const maxTopicBytes = 1024

// validTopic reports whether a text is the name of a topic to which the handler may
// subscribe. Devices name such topics, so wildcards and the broker's own topics are not
// permitted.
func validTopic(topic string) bool {
	return topic != "" && len(topic) <= maxTopicBytes && !strings.ContainsAny(topic, "+#\x00") &&
		!strings.HasPrefix(topic, "$") && utf8.ValidString(topic)
}

// merger combines announcements of the same device. The announcement with the smallest
// topic describes the device, and the device is online if one of them is.
type merger struct {
	byID map[string]*merged
}

type merged struct {
	topic  string
	device Device
}

func newMerger(size int) *merger { return &merger{byID: make(map[string]*merged, size)} }

func (m *merger) add(topic string, device Device) {
	former, found := m.byID[device.ID]
	if !found {
		m.byID[device.ID] = &merged{topic, device}
		return
	}
	presence := min(former.device.Presence, device.Presence)
	if topic < former.topic {
		former.topic, former.device = topic, device
	}
	former.device.Presence = presence
}

func (m *merger) list() []Device {
	devices := make([]Device, 0, len(m.byID))
	for _, each := range m.byID {
		devices = append(devices, each.device)
	}
	return devices
}
