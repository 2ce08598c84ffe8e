package convention

import (
	"slices"
	"strings"

	"akri.sh/akri/discovery/internal/jsonvalue"
	"akri.sh/akri/discovery/mqtt/details"
)

// topics are devices that the author of a Configuration describes.
type topics struct {
	*details.FreeTopics
	// announcements and states are the topic filters, by level. The latter is nil if there
	// are no states.
	announcements, states []string
}

func newTopics(described *details.FreeTopics) topics {
	t := topics{FreeTopics: described, announcements: strings.Split(described.Announce, "/")}
	if described.Online != nil {
		t.states = strings.Split(described.Online.Topic.Filter(), "/")
	}
	return t
}

func (t topics) filters() []string {
	if t.states == nil || slices.Equal(t.states, t.announcements) {
		return []string{t.Announce}
	}
	return []string{t.Announce, strings.Join(t.states, "/")}
}

func (t topics) maxPayload() int { return maxPayload }

// match returns the levels of a topic that + stands for.
func match(filter []string, topic string) (levels []string, ok bool) {
	for i, level := range filter {
		text, rest, more := strings.Cut(topic, "/")
		if level == "+" {
			levels = append(levels, text)
		} else if level != text {
			return nil, false
		}
		if more != (i < len(filter)-1) {
			return nil, false
		}
		topic = rest
	}
	return levels, true
}

// state implements [layout].
func (t topics) state(message Message) (text string, ok bool) {
	if _, ok = match(t.states, message.Topic); !ok || t.states == nil {
		return "", false
	}
	return clean(valuesOf(message, nil)(t.Online.Value)), true
}

// valuesOf returns a function that returns the value of an expression in a message.
func valuesOf(message Message, levels []string) func(details.Expression) string {
	document, _ := jsonvalue.Parse(message.Payload)
	return func(expression details.Expression) string {
		path, ok := expression.Path()
		switch {
		case !ok:
			return expression.Text(levels)
		case path == "":
			return string(message.Payload)
		}
		return scalar(document.Get(path))
	}
}

// parse implements [layout].
func (t topics) parse(message Message) (devices []announcement, f fault, ok bool) {
	levels, ok := match(t.announcements, message.Topic)
	if !ok {
		return nil, fault{}, false
	}
	value := valuesOf(message, levels)
	found := announcement{device: Device{ID: strings.Clone(value(t.ID)), BaseTopic: message.Topic, More: map[string]string{}}}
	if !validID(found.device.ID) {
		return []announcement{}, fault{reason: FaultMalformed}, true
	}
	if t.states != nil {
		found.availability = []availability{{topic: t.Online.Topic.Text(levels), online: t.Online.Is}}
	}
	for name, expression := range t.Properties {
		if text := clean(value(expression)); text != "" {
			found.device.More[name] = text
		}
	}
	return []announcement{found}, fault{}, true
}
