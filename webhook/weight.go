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
func specBytes(raw []byte) int {
	var object struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return 0 // decodeRequest says why
	}
	return len(object.Spec)
}

// reduce returns a Configuration in JSON, reduced to what the checks read. Others write the
// rest, and as much as they want: agents and the controller the status, and everybody who may
// write either the managed fields. One that cannot be decoded is returned as it is.
func reduce(raw []byte) []byte {
	var object struct {
		Metadata struct {
			Name string `json:"name,omitempty"`
			UID  string `json:"uid,omitempty"`
		} `json:"metadata"`
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return raw // decodeRequest says why
	}
	metadata, err := json.Marshal(object.Metadata)
	if err != nil {
		return raw
	}
	reduced := slices.Concat([]byte(`{"metadata":`), metadata)
	if object.Spec != nil {
		reduced = slices.Concat(reduced, []byte(`,"spec":`), object.Spec)
	}
	return append(reduced, '}')
}

// compiledBytes estimates the memory that the templates of a Configuration take when
// they are compiled, given their size when decoded.
func compiledBytes(raw []byte, decoded int64) int64 {
	return decoded + min(maxCompiledBytes, expressionBytes*int64(bytes.Count(raw, []byte("{{"))))
}
