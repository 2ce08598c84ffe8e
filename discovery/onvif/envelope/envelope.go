package envelope

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

const (
	// MaxBytes bounds what is read of a document. Announcements and answers have some KiB,
	// except for lists, such as the profiles of a recorder.
	MaxBytes = 32 << 10
	// maxDepth bounds how deeply elements may be nested. Answers have about ten levels.
	maxDepth = 64
)

// ErrTooLarge means that a document has more than MaxBytes. What precedes them was read.
var ErrTooLarge = fmt.Errorf("not accepted: more than %d bytes", MaxBytes)

// Decode reads a document into a struct, as [xml.Unmarshal] does. Text that is not UTF-8 is
// read as ISO 8859-1, whatever the document claims.
func Decode(data []byte, into any) error {
	text := bytes.NewReader(toUTF8(data[:min(len(data), MaxBytes)]))
	plain := xml.NewDecoder(text)
	plain.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	err := xml.NewTokenDecoder(&bounded{decoder: plain}).Decode(into)
	_, isSyntax := errors.AsType[*xml.SyntaxError](err)
	switch isSyntax = isSyntax || errors.Is(err, io.EOF); {
	case isSyntax && text.Len() == 0 && len(data) > MaxBytes:
		return ErrTooLarge
	case isSyntax:
		return fmt.Errorf("not valid XML: %w", err)
	}
	return err
}

// bounded are the tokens of a document, which end with an error if they are not accepted.
type bounded struct {
	decoder *xml.Decoder
	depth   int
}

// Token implements [xml.TokenReader].
func (b *bounded) Token() (xml.Token, error) {
	token, err := b.decoder.RawToken()
	switch token.(type) {
	case xml.StartElement:
		b.depth++
	case xml.EndElement:
		b.depth--
	case xml.Directive:
		return nil, errors.New("not accepted: a document type declaration")
	}
	if b.depth > maxDepth {
		return nil, fmt.Errorf("not accepted: more than %d levels", maxDepth)
	}
	return token, err
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
