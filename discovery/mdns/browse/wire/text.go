package wire

import "strings"

// Pair is a key of a TXT record with its value.
type Pair struct {
	// Key is as the device writes it. Keys are compared without regard to case.
	Key string
	// Value is empty for a key without a value. It may be binary.
	Value string
}

// ParseText returns the keys and values in the data of a TXT record, in their order. If a
// key is repeated, the first one counts. Strings without a key are left out.
func ParseText(data string) []Pair {
	var pairs []Pair
	seen := map[string]bool{}
	for data != "" {
		length := int(data[0])
		if length > len(data)-1 {
			return pairs // the rest is malformed
		}
		key, value, _ := strings.Cut(data[1:1+length], "=")
		data = data[1+length:]
		if key == "" || seen[strings.ToLower(key)] {
			continue
		}
		seen[strings.ToLower(key)] = true
		pairs = append(pairs, Pair{Key: key, Value: value})
	}
	return pairs
}
