package convention

import (
	"regexp"
	"slices"
	"strings"

	"akri.sh/akri/discovery/internal/jsonvalue"
	"akri.sh/akri/discovery/mqtt/details"
)

// topics are devices that the author of a Configuration describes.
type topics struct {
	*details.FreeTopics
	// announcements and states match topics, with the texts of the levels that + stands for. The
	// latter is nil if there are no states.
	announcements, states *regexp.Regexp
}

func newTopics(described *details.FreeTopics) topics {
	t := topics{FreeTopics: described, announcements: filterExpression(described.Announce)}
	if described.Online != nil {
		t.states = filterExpression(described.Online.Topic.Filter())
	}
	return t
}

// filterExpression returns an expression for what a topic filter matches.
func filterExpression(filter string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(filter), `\+`, "([^/]*)") + "$")
}

func (t topics) filters() []string {
	filters := []string{t.Announce}
	if t.states != nil {
		filters = append(filters, t.Online.Topic.Filter())
	}
	return slices.Compact(filters)
}

// state implements [layout].
func (t topics) state(message Message) (text string, ok bool) {
	if t.states == nil || !t.states.MatchString(message.Topic) {
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
func (t topics) parse(message Message) (devices []announcement, fault Effect, ok bool) {
	levels := t.announcements.FindStringSubmatch(message.Topic)
	if levels == nil {
		return nil, Effect{}, false
	}
	levels = levels[1:]
	value := valuesOf(message, levels)
	id := strings.Clone(value(t.ID))
	found := announcement{keys: []string{id}, device: Device{ID: id, BaseTopic: message.Topic, More: map[string]string{}}}
	if !validID(found.device.ID) {
		return []announcement{}, Effect{Fault: FaultMalformed}, true
	}
	if t.states != nil {
		found.availability = []availability{{topic: t.Online.Topic.Text(levels), online: t.Online.Is}}
	}
	for name, expression := range t.Properties {
		if text := clean(value(expression)); text != "" {
			found.device.More[name] = text
		}
	}
	return []announcement{found}, Effect{}, true
}
