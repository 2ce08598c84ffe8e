package uatcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

const (
	// maxStringBytes bounds strings that are kept. The specification's bound on URLs is
	// 4096 bytes.
	maxStringBytes = 4096
	// maxStrings bounds the list of strings in the header of an answer.
	maxStrings = 1000
	// maxElements bounds the elements of all lists of an answer, which may take much more
	// memory than the answer.
	maxElements = 50_000
	// maxDepth bounds diagnostic information within diagnostic information.
	maxDepth = 10

	nullLength = math.MaxUint32
)

// ErrMalformed is an answer that does not follow the specification.
var ErrMalformed = errors.New("malformed answer")

// ErrTooLarge is an answer that exceeds a bound of this package.
var ErrTooLarge = errors.New("the answer is too large")

// decoder reads values from a message. After an error, all values are zero.
type decoder struct {
	data     []byte
	err      error
	elements int // of all lists
}

// fault returns the error, if any.
func (d *decoder) fault(service string) error {
	if d.err != nil {
		return fmt.Errorf("%s: %w", service, d.err)
	}
	return nil
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.data = nil
}

// next returns the next bytes, which belong to the message.
func (d *decoder) next(count uint32) []byte {
	if d.err == nil && uint64(count) > uint64(len(d.data)) {
		d.fail(fmt.Errorf("%w: it ends too early", ErrMalformed))
	}
	if d.err != nil {
		return nil
	}
	bytes := d.data[:count]
	d.data = d.data[count:]
	return bytes
}

func (d *decoder) skip(count uint32) { d.next(count) }

func (d *decoder) byte() byte {
	if b := d.next(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) uint32() uint32 {
	if b := d.next(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// length reads the length of a string or list; a null value has the length 0.
func (d *decoder) length() uint32 {
	switch n := d.uint32(); {
	case n == nullLength:
		return 0
	case n > math.MaxInt32:
		d.fail(fmt.Errorf("%w: a negative length", ErrMalformed))
		return 0
	default:
		return n
	}
}

func (d *decoder) string() string {
	n := d.length()
	if n > maxStringBytes {
		d.fail(fmt.Errorf("%w: a string of %d bytes, more than %d", ErrTooLarge, n, maxStringBytes))
	}
	return string(d.next(n))
}

// skipString skips a string or byte string of any length.
func (d *decoder) skipString() { d.skip(d.length()) }

func (d *decoder) strings(maximum int) []string {
	return list(d, maximum, 4, (*decoder).string)
}

// list reads a list. Memory is allocated only for as many elements as the rest of the
// message can contain.
func list[T any](d *decoder, maximum int, minBytes uint32, read func(*decoder) T) []T {
	n := d.length()
	switch {
	case uint64(n)*uint64(minBytes) > uint64(len(d.data)):
		d.fail(fmt.Errorf("%w: a list of %d elements in %d bytes", ErrMalformed, n, len(d.data)))
	case int(n) > maximum:
		d.fail(fmt.Errorf("%w: a list of %d elements, more than %d", ErrTooLarge, n, maximum))
	}
	if d.err != nil || n == 0 {
		return nil
	}
	if d.elements += int(n); d.elements > maxElements {
		d.fail(fmt.Errorf("%w: more than %d elements of lists", ErrTooLarge, maxElements))
		return nil
	}
	elements := make([]T, 0, n)
	for range n {
		element := read(d)
		if d.err != nil {
			return nil
		}
		elements = append(elements, element)
	}
	return elements
}

// localizedText returns the text without its locale.
func (d *decoder) localizedText() string {
	const locale, text = 1, 2
	mask := d.byte()
	if mask&locale != 0 {
		d.skipString()
	}
	if mask&text != 0 {
		return d.string()
	}
	return ""
}

// nodeID returns the number of a numeric node ID in namespace 0, and 0 for any other.
func (d *decoder) nodeID() uint32 {
	const namespaceURI, serverIndex = 0x80, 0x40 // of an ExpandedNodeId
	encoding := d.byte()
	number := uint32(0)
	switch encoding &^ (namespaceURI | serverIndex) {
	case 0: // two bytes
		number = uint32(d.byte())
	case 1: // four bytes
		namespace := d.byte()
		low, high := d.byte(), d.byte()
		if namespace == 0 {
			number = uint32(low) | uint32(high)<<8
		}
	case 2: // numeric
		namespace := uint32(d.byte()) | uint32(d.byte())<<8
		if n := d.uint32(); namespace == 0 {
			number = n
		}
	case 3, 5: // a string, opaque
		d.skip(2)
		d.skipString()
	case 4: // a GUID
		d.skip(18)
	default:
		d.fail(fmt.Errorf("%w: unknown encoding 0x%02x of a node ID", ErrMalformed, encoding))
	}
	if encoding&namespaceURI != 0 {
		d.skipString()
	}
	if encoding&serverIndex != 0 {
		d.skip(4)
	}
	return number
}

// responseHeader reads the header of an answer, and returns the status of the service.
func (d *decoder) responseHeader() StatusCode {
	d.skip(12) // the time, and the handle of the request
	status := StatusCode(d.uint32())
	d.skipDiagnostics(0)
	list(d, maxStrings, 4, func(d *decoder) struct{} { d.skipString(); return struct{}{} })
	d.nodeID() // an additional header
	if d.byte() != 0 {
		d.skipString()
	}
	return status
}

// skipDiagnostics skips a DiagnosticInfo.
func (d *decoder) skipDiagnostics(depth int) {
	if depth > maxDepth {
		d.fail(fmt.Errorf("%w: diagnostic information is nested more than %d times", ErrTooLarge, maxDepth))
		return
	}
	const additionalInfo, innerStatus, inner = 0x10, 0x20, 0x40
	mask := d.byte()
	for bit := byte(1); bit < additionalInfo; bit <<= 1 { // indexes of strings
		if mask&bit != 0 {
			d.skip(4)
		}
	}
	if mask&additionalInfo != 0 {
		d.skipString()
	}
	if mask&innerStatus != 0 {
		d.skip(4)
	}
	if mask&inner != 0 {
		d.skipDiagnostics(depth + 1)
	}
}
