package details

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"akri.sh/akri/discovery/details"
	"akri.sh/akri/internal/text"
)

const (
	// maxExpressionBytes bounds a text with references such as $1. Each reference is replaced
	// by a level of a topic, so a short text can become a long one.
	maxExpressionBytes = 1024
	// maxTopicBytes is the maximum length of a topic in MQTT.
	maxTopicBytes = 65535
	// maxProperties bounds topics.properties.
	maxProperties = 100
)

// FreeTopics describe devices that follow no convention.
type FreeTopics struct {
	// Announce is a topic with + for levels, whose texts are $1, $2 and so on.
	Announce string     `json:"announce"`
	ID       Expression `json:"id"`
	// Online is where a device reports that it is online. Without it, a device is online
	// as long as its announcement is retained.
	Online *Online `json:"online"`
	// Properties are further properties.
	Properties map[string]Expression `json:"properties"`
}

// Online is a topic whose payload says whether a device is online.
type Online struct {
	// Topic is a topic with $1, $2 and so on.
	Topic Expression `json:"topic"`
	// Is lists the payloads that mean online.
	Is []string `json:"is"`
	// Value is the compared part of the payload, such as payload.state; by default all.
	Value Expression `json:"value"`
}

// reserved are the properties that every device has.
var reserved = []string{"MQTT_BROKER_URL", "MQTT_BASE_TOPIC", "MQTT_DEVICE_ID"}

// check returns the mistake in the topics, and fills in defaults.
func (f *FreeTopics) check() error {
	levels, err := f.checkAnnounce()
	if err != nil {
		return err
	}
	if f.ID == "" {
		return details.Faultf("topics.id", "missing").Hintf("write what identifies a device, such as \"$1\" or payload.serial")
	}
	if err := f.ID.check("topics.id", levels); err != nil {
		return err
	}
	if f.Online != nil {
		if err := f.Online.check(levels); err != nil {
			return err
		}
	}
	return f.checkProperties(levels)
}

// checkAnnounce returns the number of levels that differ between devices.
func (f *FreeTopics) checkAnnounce() (levels int, err error) {
	if f.Announce == "" {
		return 0, details.Faultf("topics.announce", "missing").Hintf("write the topic of announcements, such as plant/+/+/info")
	}
	others := 0
	for level := range strings.SplitSeq(f.Announce, "/") {
		switch {
		case level == "+":
			levels++
		case strings.ContainsAny(level, "+#\x00") || !utf8.ValidString(level):
			return 0, details.Faultf("topics.announce", "the level %q is not valid", level).
				Hintf("write + for a whole level; # is not supported")
		case level != "":
			others++
		}
	}
	if levels == 0 || others == 0 || len(f.Announce) > maxTopicBytes {
		return 0, details.Faultf("topics.announce", "has no level +, or no other level").
			Hintf("write + for the levels that differ, as in plant/+/info")
	}
	return levels, nil
}

func (f *FreeTopics) checkProperties(levels int) error {
	if len(f.Properties) > maxProperties {
		return details.Faultf("topics.properties", "%d are too many", len(f.Properties)).Hintf("use at most %d", maxProperties)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Properties)) {
		path := "topics.properties." + name
		if err := details.CheckVariable("topics.properties", name); err != nil {
			return err
		}
		if slices.Contains(reserved, name) {
			return details.Faultf(path, "the handler sets this property").Hintf("use another name")
		}
		if err := f.Properties[name].check(path, levels); err != nil {
			return err
		}
	}
	return nil
}

func (o *Online) check(levels int) error {
	if o.Topic == "" {
		return details.Faultf("topics.online.topic", "missing").Hintf("write the topic of the state, such as plant/$1/status")
	}
	if cause := checkTopicName(string(o.Topic)); cause != "" {
		return details.Faultf("topics.online.topic", "%s", cause).Hintf("write $1 for the text of the first + in announce")
	}
	if len(o.Is) == 0 {
		return details.Faultf("topics.online.is", "missing").Hintf("list the payloads that mean online, such as [online]")
	}
	if err := o.Topic.checkText("topics.online.topic", levels); err != nil {
		return err
	}
	o.Value = cmp.Or(o.Value, "payload")
	if _, ok := o.Value.Path(); !ok {
		return details.Faultf("topics.online.value", "%q is not a part of the payload", text.Truncate(string(o.Value), details.MaxQuoted)).
			Hintf("write payload.PATH, such as payload.state")
	}
	return o.Value.check("topics.online.value", levels)
}

// checkTopicName returns the mistake in the name of a topic, or "".
func checkTopicName(name string) string {
	switch {
	case strings.ContainsAny(name, "+#"):
		return "contains a wildcard"
	case strings.ContainsRune(name, 0) || !utf8.ValidString(name):
		return "not valid text"
	case len(name) > maxTopicBytes:
		return "too long"
	case strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/"):
		return "begins or ends with /"
	}
	return ""
}

// Expression is payload, payload.PATH for a value in the payload's JSON, or a text with $1, $2
// and so on for the levels of a topic.
type Expression string

// levelReference matches what stands for the text of a level.
var levelReference = regexp.MustCompile(`\$\d{0,3}`)

func (e Expression) check(place string, levels int) error {
	path, ok := e.Path()
	switch {
	case !ok:
		return e.checkText(place, levels)
	case e == "payload":
		return nil
	}
	return details.CheckPath(place, "payload.", path)
}

// checkText returns the mistake in a text with $1, $2 and so on.
func (e Expression) checkText(place string, levels int) error {
	if len(e) > maxExpressionBytes {
		return details.Faultf(place, "%d bytes, the limit is %d", len(e), maxExpressionBytes).Hintf("write a shorter text")
	}
	for _, reference := range levelReference.FindAllString(string(e), -1) {
		if level, err := strconv.Atoi(reference[1:]); err != nil || level < 1 || level > levels {
			return details.Faultf(place, "%s is not a level of topics.announce", reference).
				Hintf("write $1 to $%d, for the texts of +", levels)
		}
	}
	return nil
}

// Path returns where the value is in the payload; empty for all of it. ok is false for a text,
// which does not need the payload.
func (e Expression) Path() (path string, ok bool) {
	if e == "payload" {
		return "", true
	}
	return strings.CutPrefix(string(e), "payload.")
}

// Text returns the text with the levels filled in.
func (e Expression) Text(levels []string) string {
	return levelReference.ReplaceAllStringFunc(string(e), func(reference string) string {
		level, _ := strconv.Atoi(reference[1:])
		if level < 1 || level > len(levels) {
			return ""
		}
		return levels[level-1]
	})
}

// Filter returns the text with + for each level, to subscribe to. A level that is only a
// part of a topic's level makes the whole topic level a +.
func (e Expression) Filter() string {
	levels := strings.Split(string(e), "/")
	for i, level := range levels {
		if levelReference.MatchString(level) {
			levels[i] = "+"
		}
	}
	return strings.Join(levels, "/")
}
