package envelope

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"unicode/utf8"
)

// MaxBytes bounds what is read of a document. Announcements and answers have some KiB,
// except for lists, such as the profiles of a recorder.
const MaxBytes = 32 << 10

// ErrTooLarge means that a document has more than MaxBytes. What precedes them was read.
var ErrTooLarge = fmt.Errorf("not accepted: more than %d bytes", MaxBytes)

// Decode reads a document into a struct, as [xml.Unmarshal] does. Text that is not UTF-8 is
// read as ISO 8859-1, whatever the document claims. Entities that are unknown stay as they
// are written.
func Decode(data []byte, into any) error {
	text := bytes.NewReader(toUTF8(data[:min(len(data), MaxBytes)]))
	decoder := xml.NewDecoder(text)
	decoder.Strict = false
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	err := decoder.Decode(into)
	switch {
	case err == nil:
		return nil
	case text.Len() == 0 && len(data) > MaxBytes:
		return ErrTooLarge
	}
	return fmt.Errorf("not valid XML: %w", err)
}

// toUTF8 returns text with the bytes that are not UTF-8 converted from ISO 8859-1.
func toUTF8(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	converted := make([]byte, 0, len(data)+len(data)/8)
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			r = rune(data[0])
		}
		converted, data = utf8.AppendRune(converted, r), data[size:]
	}
	return converted
}
