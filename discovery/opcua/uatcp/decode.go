package uatcp

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

const (
	// maxStringBytes bounds strings that are kept; longer ones count as empty. The
	// specification's bound on URLs is 4096 bytes, but no server has such ones.
	maxStringBytes = 512

	nullLength = math.MaxUint32
)

// ErrMalformed is an answer that does not follow the specification.
var ErrMalformed = errors.New("malformed answer")

// ErrTooLarge is an answer that exceeds a bound of this package.
var ErrTooLarge = errors.New("the answer is too large")

// decoder reads values from a message. After an error, all values are zero.
type decoder struct {
	from    io.Reader
	err     error
	scratch [8]byte
}

// end reads the rest of a message and returns the error, if any.
func (d *decoder) end() error {
	if d.err == nil {
		if _, err := io.Copy(io.Discard, d.from); !errors.Is(err, errShort) {
			d.err = cmp.Or(err, io.ErrUnexpectedEOF) // without an error, the connection has ended
		}
	}
	return d.err
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// next returns the next bytes, at most 8. They are valid until the next call.
func (d *decoder) next(count int) []byte {
	bytes := d.scratch[:count]
	if d.err == nil {
		_, d.err = io.ReadFull(d.from, bytes)
	}
	if d.err != nil {
		clear(bytes)
	}
	return bytes
}

func (d *decoder) skip(count uint32) {
	if d.err == nil {
		_, d.err = io.CopyN(io.Discard, d.from, int64(count))
	}
}

func (d *decoder) byte() byte { return d.next(1)[0] }

func (d *decoder) uint32() uint32 { return binary.LittleEndian.Uint32(d.next(4)) }

// failure reads the status of a message that reports an error.
func (d *decoder) failure() error {
	status := StatusCode(d.uint32() | 0x80000000)
	if d.err != nil {
		return d.err
	}
	return status
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
		d.skip(n)
		return ""
	}
	bytes := make([]byte, n)
	if d.err == nil {
		_, d.err = io.ReadFull(d.from, bytes)
	}
	if d.err != nil {
		return ""
	}
	return string(bytes)
}

// name returns the name of a number.
func (d *decoder) name(names []string) string {
	if n := d.uint32(); int64(n) < int64(len(names)) {
		return names[n]
	}
	return "Unknown"
}

// skipString skips a string or byte string of any length.
func (d *decoder) skipString() { d.skip(d.length()) }

// list reads the elements of a list.
func (d *decoder) list(maximum uint32, read func()) {
	n := d.length()
	if n > maximum {
		d.fail(fmt.Errorf("%w: a list of %d elements, more than %d", ErrTooLarge, n, maximum))
	}
	for ; n > 0 && d.err == nil; n-- {
		read()
	}
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
	d.skipDiagnostics()
	d.list(math.MaxInt32, d.skipString)
	d.nodeID() // an additional header
	if d.byte() != 0 {
		d.skipString()
	}
	return status
}

// skipDiagnostics skips a DiagnosticInfo, which may end with another one.
func (d *decoder) skipDiagnostics() {
	const additionalInfo, innerStatus, inner = 0x10, 0x20, 0x40
	for mask := byte(inner); mask&inner != 0; {
		mask = d.byte()
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
	}
}
