package webhook

import (
	"bytes"
	"encoding/json"
	"slices"
)

// What decoding JSON into maps and lists allocates, in bytes.
const (
	mapBytes     = 340 // the map, and room for eight entries
	listBytes    = 100 // the list, and room for four elements
	elementBytes = 80  // an element, and the room that growing wastes
	textBytes    = 24  // the header of a text
)

// expressionBytes is what an expression takes when it is compiled; templating limits
// the expressions of both lists to maxCompiledBytes together.
const (
	expressionBytes  = 1600
	maxCompiledBytes = 32 << 20
)

// decodedBytes estimates the memory that an object in JSON takes when it is decoded:
// up to forty times the size of its text.
func decodedBytes(raw []byte) int64 {
	total := int64(len(raw))
	quoted := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			if quoted = !quoted; quoted {
				total += textBytes
			}
		case quoted:
		case c == '{':
			total += mapBytes
		case c == '[':
			total += listBytes
		case c == ',':
			total += elementBytes
		}
	}
	return total
}

// specBytes returns the size of the spec of an object in JSON, 0 if it has none.
func specBytes(raw []byte) int { return len(rawSpec(raw)) }

// specOf returns an object in JSON, reduced to its spec; nil if it has none.
func specOf(raw []byte) []byte {
	spec := rawSpec(raw)
	if spec == nil {
		return nil
	}
	return slices.Concat([]byte(`{"spec":`), spec, []byte(`}`))
}

func rawSpec(raw []byte) json.RawMessage {
	var object struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil // decodeRequest says why
	}
	return object.Spec
}

// compiledBytes estimates the memory that the templates of a Configuration take when
// they are compiled, given their size when decoded.
func compiledBytes(raw []byte, decoded int64) int64 {
	return decoded + min(maxCompiledBytes, expressionBytes*int64(bytes.Count(raw, []byte("{{"))))
}
