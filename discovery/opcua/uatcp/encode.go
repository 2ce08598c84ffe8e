package uatcp

import (
	"encoding/binary"
	"time"
)

// encoder appends values to a message.
type encoder struct{ data []byte }

func (e *encoder) bytes(b ...byte) { e.data = append(e.data, b...) }

func (e *encoder) uint32(v uint32) { e.data = binary.LittleEndian.AppendUint32(e.data, v) }

// null appends a null string, byte string or list.
func (e *encoder) null() { e.uint32(nullLength) }

func (e *encoder) string(s string) {
	e.uint32(uint32(len(s)))
	e.data = append(e.data, s...)
}

// messageID appends the node ID that says what a message is.
func (e *encoder) messageID(number uint16) {
	e.bytes(1, 0, byte(number), byte(number>>8)) // four bytes, namespace 0
}

// epoch1601 is the time 0 of OPC UA, in units of 100 ns before the epoch of Unix.
const epoch1601 = 116444736000000000

// requestHeader appends the header of a request without a session.
func (e *encoder) requestHeader(handle uint32, now time.Time) {
	e.bytes(0, 0) // no authentication token
	e.data = binary.LittleEndian.AppendUint64(e.data, uint64(now.UnixNano()/100+epoch1601))
	e.uint32(handle)
	e.uint32(0)      // no diagnostics
	e.null()         // no audit entry
	e.uint32(0)      // no timeout: the connection is closed
	e.bytes(0, 0, 0) // no additional header
}
