package details

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"akri.sh/akri/discovery/details"
)

const (
	// maxTopicBytes is the maximum length of a topic in MQTT.
	maxTopicBytes = 65535
	// maxPathElements bounds a JSON path.
	maxPathElements = 32
	// maxProperties bounds topics.properties.
	maxProperties = 100
)

// FreeTopics describe devices that follow no convention.
type FreeTopics struct {
	// Announce is a topic with + for levels, whose texts are $1, $2 and so on.
	Announce string `json:"announce"`
	// ID is a text with $1, $2 and so on, or payload.PATH.
	ID string `json:"id"`
	// Online is where a device reports that it is online. Without it, a device is online
	// as long as its announcement is retained.
	Online *Online `json:"online"`
	// Properties are further properties: texts with $1, $2 and so on, or payload.PATH.
	Properties map[string]string `json:"properties"`
}

// Online is a topic whose payload says whether a device is online.
type Online struct {
	// Topic is a topic with $1, $2 and so on.
	Topic string `json:"topic"`
	// Is lists the payloads that mean online.
	Is []string `json:"is"`
	// Value is the compared part of the payload, such as payload.state; by default all.
	Value string `json:"value"`
}

// Layout is what [FreeTopics] mean.
type Layout struct {
	// Announce is the topic of announcements, by level.
	Announce []string
	ID       Expression
	// Online is the topic of a device's state, and State the part of its payload that is
	// compared with Is. Is is empty if devices have no such topic.
	Online Expression
	State  Expression
	Is     []string
	// Properties are the further properties by name.
	Properties map[string]Expression
}

// reserved are the properties that every device has.
var reserved = []string{"MQTT_BROKER_URL", "MQTT_BASE_TOPIC", "MQTT_DEVICE_ID"}

// Compile returns what the topics mean.
func (f *FreeTopics) Compile() (*Layout, error) {
	levels, err := f.checkAnnounce()
	if err != nil {
		return nil, err
	}
	layout := &Layout{Announce: strings.Split(f.Announce, "/")}
	if f.ID == "" {
		return nil, details.Faultf("topics.id", "missing").Hintf("write what identifies a device, such as \"$1\" or payload.serial")
	}
	if layout.ID, err = parseExpression("topics.id", f.ID, levels); err != nil {
		return nil, err
	}
	if f.Online != nil {
		if err := f.Online.compile(levels, layout); err != nil {
			return nil, err
		}
	}
	layout.Properties, err = f.compileProperties(levels)
	return layout, err
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

func (f *FreeTopics) compileProperties(levels int) (map[string]Expression, error) {
	if len(f.Properties) > maxProperties {
		return nil, details.Faultf("topics.properties", "%d are too many", len(f.Properties)).Hintf("use at most %d", maxProperties)
	}
	values := map[string]Expression{}
	for _, name := range slices.Sorted(maps.Keys(f.Properties)) {
		path := "topics.properties." + name
		switch {
		case !variableName.MatchString(name):
			return nil, details.Faultf(path, "not a valid name of an environment variable").Hintf("use letters, digits and _")
		case slices.Contains(reserved, name):
			return nil, details.Faultf(path, "the handler sets this property").Hintf("use another name")
		}
		value, err := parseExpression(path, f.Properties[name], levels)
		if err != nil {
			return nil, err
		}
		values[name] = value
	}
	return values, nil
}

func (o *Online) compile(levels int, layout *Layout) error {
	if o.Topic == "" {
		return details.Faultf("topics.online.topic", "missing").Hintf("write the topic of the state, such as plant/$1/status")
	}
	if cause := checkTopicName(o.Topic); cause != "" {
		return details.Faultf("topics.online.topic", "%s", cause).Hintf("write $1 for the text of the first + in announce")
	}
	if len(o.Is) == 0 {
		return details.Faultf("topics.online.is", "missing").Hintf("list the payloads that mean online, such as [online]")
	}
	var err error
	if layout.Online, err = parseTemplate("topics.online.topic", o.Topic, levels); err != nil {
		return err
	}
	value := o.Value
	if value == "" {
		value = "payload"
	}
	if layout.State, err = parseExpression("topics.online.value", value, levels); err != nil {
		return err
	}
	if _, ok := layout.State.Path(); !ok {
		return details.Faultf("topics.online.value", "%q is not a part of the payload", o.Value).
			Hintf("write payload.PATH, such as payload.state")
	}
	layout.Is = o.Is
	return nil
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

// Expression is a text with levels of a topic, or a part of a JSON payload.
type Expression struct {
	// parts are texts, each followed by a level; the last has level 0, for none.
	parts []topicPart
	// path is where the value is in the payload; nil if the expression is a text.
	path []string
}

type topicPart struct {
	text  string
	level int
}

// parseExpression parses payload, payload.PATH, or a text with $1, $2 and so on.
func parseExpression(path, text string, levels int) (Expression, error) {
	if text != "payload" && !strings.HasPrefix(text, "payload.") {
		return parseTemplate(path, text, levels)
	}
	elements := strings.Split(text, ".")[1:]
	if slices.Contains(elements, "") || len(elements) > maxPathElements {
		return Expression{}, details.Faultf(path, "%q is not a valid path", text).
			Hintf("separate keys and indexes by single periods, as in payload.device.0.model")
	}
	return Expression{path: append([]string{}, elements...)}, nil
}

func parseTemplate(path, text string, levels int) (Expression, error) {
	var parsed Expression
	rest := text
	for {
		before, after, found := strings.Cut(rest, "$")
		if !found {
			parsed.parts = append(parsed.parts, topicPart{text: rest})
			return parsed, nil
		}
		digits := 0
		for digits < len(after) && digits < 3 && after[digits] >= '0' && after[digits] <= '9' {
			digits++
		}
		level, err := strconv.Atoi(after[:digits])
		if err != nil || level < 1 || level > levels {
			return Expression{}, details.Faultf(path, "$%s is not a level of topics.announce", after[:digits]).
				Hintf("write $1 to $%d, for the texts of +", levels)
		}
		parsed.parts = append(parsed.parts, topicPart{text: before, level: level})
		rest = after[digits:]
	}
}

// Path returns where the value is in the payload. ok is false for a text, which does not
// need the payload.
func (e Expression) Path() (path []string, ok bool) { return e.path, e.path != nil }

// Text returns the text with the levels filled in.
func (e Expression) Text(levels []string) string {
	var text strings.Builder
	for _, part := range e.parts {
		text.WriteString(part.text)
		if part.level > 0 && part.level <= len(levels) {
			text.WriteString(levels[part.level-1])
		}
	}
	return text.String()
}

// Filter returns the text with + for each level, to subscribe to. A level that is only a
// part of a topic's level makes the whole topic level a +.
func (e Expression) Filter() string {
	var marked strings.Builder
	for _, part := range e.parts {
		marked.WriteString(part.text)
		if part.level > 0 {
			marked.WriteByte('+')
		}
	}
	levels := strings.Split(marked.String(), "/")
	for i, level := range levels {
		if strings.Contains(level, "+") {
			levels[i] = "+"
		}
	}
	return strings.Join(levels, "/")
}
