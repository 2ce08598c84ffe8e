package convention

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"akri.sh/akri/discovery/internal/jsonvalue"
	"akri.sh/akri/internal/text"
)

const (
	// maxPayload bounds the payload of a message, in bytes.
	maxPayload = 256 << 10
	// maxValueBytes bounds a property's value. Longer ones are cut.
	maxValueBytes = 512
	// maxIDBytes bounds a device's id. Devices with longer ones are ignored.
	maxIDBytes = 512
	// maxTopicBytes and maxTopicLevels bound the topics that devices name. MQTT allows 64 KiB, but
	// brokers end the connection of a client that subscribes to more than some levels.
	maxTopicBytes  = 1024
	maxTopicLevels = 128
)

// decode returns the object in a payload.
func decode(payload []byte) (object gjson.Result, ok bool) {
	object, ok = jsonvalue.Parse(payload)
	return object, ok && object.IsObject()
}

// textOf returns the text of a value of an object; "" if it is a list or an object.
func textOf(object gjson.Result, key string) string { return scalar(object.Get(key)) }

// scalar returns the text of a value; "" if it is a list or an object.
func scalar(of gjson.Result) string {
	found, _ := jsonvalue.Text(of)
	return found
}

// clean returns a text for a property: one line of valid UTF-8 that is not too long. The
// result does not share memory with the payload.
func clean(value string) string {
	return strings.Clone(strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text.Truncate(value, maxValueBytes))))
}

// validID reports whether a text can identify a device.
func validID(id string) bool {
	return strings.TrimSpace(id) != "" && len(id) <= maxIDBytes && utf8.ValidString(id) && !strings.ContainsFunc(id, unicode.IsControl)
}

// validTopic reports whether a text is the name of a topic to which the handler may
// subscribe. Devices name such topics, so wildcards and the broker's own topics are not
// permitted. Brokers may end the connection because of the characters that MQTT advises against.
func validTopic(topic string) bool {
	return topic != "" && len(topic) <= maxTopicBytes && strings.Count(topic, "/") < maxTopicLevels && utf8.ValidString(topic) &&
		!strings.HasPrefix(topic, "$") && !strings.ContainsAny(topic, "+#") && !strings.ContainsFunc(topic, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Noncharacter_Code_Point, r)
	})
}
