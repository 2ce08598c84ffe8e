package envelope

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"regexp"
	"unicode/utf8"
)

// MaxBytes bounds what is read of a document. Announcements and answers have some KiB,
// except for lists, such as the profiles of a recorder.
const MaxBytes = 32 << 10

// declaration matches what precedes the first element, with a declaration that may be wrong.
var declaration = regexp.MustCompile(`^[^<]*(?:<\?xml[^>]*>)?`)

// Decode reads a document into a struct, as [xml.Unmarshal] does, but as browsers would. Text
// that is not UTF-8 is read as ISO 8859-1, whatever the document claims. Characters that no
// document may have are ignored, and entities that are unknown stay as they are written. If
// there is an error, what precedes it has been read.
func Decode(data []byte, into any) error {
	text := declaration.ReplaceAll(toUTF8(data[:min(len(data), MaxBytes)]), nil)
	decoder := xml.NewDecoder(bytes.NewReader(text))
	decoder.Strict = false
	err := decoder.Decode(into)
	switch {
	case err == nil:
		return nil
	case len(data) > MaxBytes:
		return fmt.Errorf("not accepted: more than %d bytes", MaxBytes)
	}
	return fmt.Errorf("not valid XML: %w", err)
}

// toUTF8 returns text with the bytes that are not UTF-8 converted from ISO 8859-1, and without
// control characters.
func toUTF8(data []byte) []byte {
	converted := make([]byte, 0, len(data)+len(data)/8)
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			r = rune(data[0])
		}
		if r >= ' ' && r < 0xfffe || r > 0xffff || r == '\t' || r == '\n' || r == '\r' {
			converted = utf8.AppendRune(converted, r)
		}
		data = data[size:]
	}
	return converted
}
