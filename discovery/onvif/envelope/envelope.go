package envelope

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"sync"
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

// parsing is held while a document is parsed, because that may take many times its memory.
var parsing sync.Mutex

// Decode reads a document into a struct, as [xml.Unmarshal] does. Text that is not UTF-8 is
// read as ISO 8859-1, whatever the document claims.
func Decode(data []byte, into any) error {
	parsing.Lock()
	defer parsing.Unlock()
	input := bounded{data: toUTF8(data[:min(len(data), MaxBytes)]), end: io.EOF}
	if len(data) > MaxBytes {
		input.end = ErrTooLarge
	}
	input.decoder = xml.NewDecoder(&input)
	input.decoder.CharsetReader = func(_ string, text io.Reader) (io.Reader, error) { return text, nil }
	err := xml.NewTokenDecoder(&input).Decode(into)
	if _, isSyntax := errors.AsType[*xml.SyntaxError](err); isSyntax || errors.Is(err, io.EOF) {
		return fmt.Errorf("not valid XML: %w", err)
	}
	return err
}

// bounded is the text of a document as a reader of bytes, and as one of tokens, which ends
// with an error when the document exceeds a bound.
type bounded struct {
	decoder *xml.Decoder
	data    []byte
	end     error
	depth   int
}

// Read implements [io.Reader].
func (b *bounded) Read(buffer []byte) (int, error) {
	if len(b.data) == 0 {
		return 0, b.end
	}
	n := copy(buffer, b.data)
	b.data = b.data[n:]
	return n, nil
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
