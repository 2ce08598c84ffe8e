package convention

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxPayload bounds the payload of a message, in bytes.
	maxPayload = 256 << 10
	// maxDepth bounds the nesting of JSON.
	maxDepth = 64
	// maxValueBytes bounds a property's value. Longer ones are cut.
	maxValueBytes = 1024
	// maxIDBytes bounds a device's id. Devices with longer ones are ignored.
	maxIDBytes = 512
)

// decode decodes JSON into a value. It reports whether the JSON is valid.
func decode(payload []byte, into any) bool {
	return !tooDeep(payload) && json.Unmarshal(payload, into) == nil
}

// tooDeep reports whether JSON has more levels than maxDepth. The decoder would use memory
// for each.
func tooDeep(payload []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(payload); i++ {
		switch c := payload[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// clean returns a text for a property: one line of valid UTF-8 that is not too long. The
// result does not share memory with the payload.
func clean(text string) string {
	if len(text) > maxValueBytes {
		text = text[:maxValueBytes]
		for len(text) > 0 && !utf8.RuneStart(text[len(text)-1]) {
			text = text[:len(text)-1]
		}
		if r, size := utf8.DecodeLastRuneInString(text); r == utf8.RuneError && size == 1 {
			text = text[:len(text)-1]
		}
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
	return strings.Clone(strings.TrimSpace(text))
}

// validID reports whether a text can identify a device.
func validID(id string) bool {
	return id != "" && len(id) <= maxIDBytes && utf8.ValidString(id) && !strings.ContainsFunc(id, unicode.IsControl)
}

// scalar returns a JSON value as text: strings without quotes, and numbers and Booleans as
// they are written. Other values are "".
func scalar(raw json.RawMessage) string {
	var text string
	if len(raw) > 0 && raw[0] == '"' {
		if json.Unmarshal(raw, &text) != nil {
			return ""
		}
		return text
	}
	text = string(raw)
	if text == "null" || strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		return ""
	}
	return text
}

// lookup returns the text at a path in JSON. An element of the path is a key, or the index
// of a list. Without a path it returns the payload itself. A text that is missing is "".
func lookup(payload []byte, path []string) string {
	if len(path) == 0 {
		return string(payload)
	}
	var raw json.RawMessage
	if !decode(payload, &raw) {
		return ""
	}
	for _, element := range path {
		if len(raw) > 0 && raw[0] == '[' {
			var items []json.RawMessage
			index, err := strconv.Atoi(element)
			if err != nil || json.Unmarshal(raw, &items) != nil || index < 0 || index >= len(items) {
				return ""
			}
			raw = items[index]
			continue
		}
		var entries map[string]json.RawMessage
		if json.Unmarshal(raw, &entries) != nil {
			return ""
		}
		next, ok := entries[element]
		if !ok {
			return ""
		}
		raw = next
	}
	return scalar(raw)
}
