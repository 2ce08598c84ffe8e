package uatcp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"akri.sh/akri/discovery/handlertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is the other end of a connection: it reads requests and writes whatever it was
// told, one answer per request.
type script struct {
	answers [][]byte
	// hold keeps the connection open after the last answer.
	hold bool
	// slow sends the last answer byte by byte.
	slow time.Duration
}

// ack acknowledges the client's greeting, with sizes that a client must not trust.
var ack = message("ACKF", u32(0, 4, 4, 0xffffffff, 0))

// opened answers the first request of a channel.
var opened = message("OPNF", u32(0), text(policyNone), u32(nullLength, nullLength), u32(51, 1),
	[]byte{1, 0, 0xc1, 1}, okHeader, u32(0, 9, 7), make([]byte, 12), u32(nullLength))

var okHeader = append(append(make([]byte, 17), 0xff, 0xff, 0xff, 0xff), 0, 0, 0)

func u32(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

func text(s string) []byte { return append(u32(uint32(len(s))), s...) }

// message returns a chunk of the right size.
func message(kind string, parts ...[]byte) []byte {
	b := append([]byte(kind), 0, 0, 0, 0)
	for _, part := range parts {
		b = append(b, part...)
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)))
	return b
}

func kilobytes(count int) []byte { return make([]byte, count*1000) }

// part is a chunk of the answer to the second request.
func part(final byte, body ...[]byte) []byte {
	return message("MSG"+string(final), append([][]byte{u32(9, 7, 1, 2)}, body...)...)
}

var responseID = []byte{1, 0, 0xa9, 1} // of FindServers

// otherRequest answers a request that was not made.
var otherRequest = message("MSGF", u32(9, 7, 1, 3), responseID, okHeader, u32(0))

func (s script) serve(connection net.Conn) {
	for i, answer := range s.answers {
		if readMessage(connection) != nil {
			return
		}
		if i == len(s.answers)-1 && s.slow > 0 {
			for ticks := time.Tick(s.slow); len(answer) > 1; answer = answer[1:] {
				if _, err := connection.Write(answer[:1]); err != nil {
					return
				}
				<-ticks
			}
		}
		if _, err := connection.Write(answer); err != nil {
			return
		}
	}
	switch {
	case s.hold:
		_, _ = io.Copy(io.Discard, connection) // until the client closes it
	case len(s.answers) == 0:
		_ = readMessage(connection) // a connection that is closed before it is read is reset
	}
}

// readMessage reads a message, and drops it.
func readMessage(connection net.Conn) error {
	var header [8]byte
	if _, err := io.ReadFull(connection, header[:]); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, connection, int64(binary.LittleEndian.Uint32(header[4:]))-8)
	return err
}

// open opens a channel to a script.
func (s script) open(ctx context.Context, t *testing.T) (*Channel, error) {
	t.Helper()
	address := handlertest.Listen(t, "127.0.0.1:0", s.serve)
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	channel, err := Open(ctx, connection, "opc.tcp://"+address)
	if err != nil {
		connection.Close()
	} else {
		t.Cleanup(channel.Close)
	}
	return channel, err
}

// find runs FindServers against a script, with a deadline.
func (s script) find(t *testing.T, limit time.Duration) (found []Application, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	channel, err := s.open(ctx, t)
	if err != nil {
		return nil, err
	}
	err = channel.FindServers(func(a Application) { found = append(found, a) })
	return found, err
}

func TestAnswers(t *testing.T) {
	body := append(append([]byte{}, responseID...), okHeader...)
	oneServer := append(append(append([]byte{}, body...), u32(1)...),
		append(append(text("urn:x"), u32(nullLength)...), append([]byte{2}, append(text("X"), u32(0, nullLength, nullLength, 0)...)...)...)...)
	split := [][]byte{ack, opened, append(part('C', oneServer[:9]), part('F', oneServer[9:])...)}
	servers, err := script{answers: split}.find(t, 5*time.Second)
	if err != nil || len(servers) != 1 || servers[0].Name != "X" || servers[0].URI != "urn:x" {
		t.Errorf("an answer in two chunks: %+v, %v", servers, err)
	}
}

func TestFaults(t *testing.T) {
	const slow = 20 * time.Millisecond
	noServer := part('F', responseID, okHeader, u32(0))
	large := append(part('C', responseID, okHeader, u32(1), u32(1_200_000)), bytes.Repeat(part('C', kilobytes(60)), 20)...)
	faulty := append([]byte{1, 0, 0x8d, 1}, append(append(make([]byte, 12), 0, 0, 0x0b, 0x80), 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0)...)
	for name, tc := range map[string]struct {
		script script
		want   error
	}{
		"it never answers":         {script{hold: true}, os.ErrDeadlineExceeded},
		"it answers the greeting":  {script{answers: [][]byte{ack}, hold: true}, os.ErrDeadlineExceeded},
		"it ends":                  {script{}, io.EOF},
		"it is a web server":       {script{answers: [][]byte{[]byte("HTTP/1.1 400 Bad Request\r\n\r\n")}}, ErrMalformed},
		"a short acknowledgement":  {script{answers: [][]byte{message("ACKF", u32(0))}}, ErrMalformed},
		"an error":                 {script{answers: [][]byte{message("ERRF", u32(0x80830000), text("no"))}}, StatusCode(0x80830000)},
		"a large greeting":         {script{answers: [][]byte{message("ACKF", kilobytes(1200))}}, ErrTooLarge},
		"a large channel":          {script{answers: [][]byte{ack, message("OPNF", kilobytes(1200))}}, ErrTooLarge},
		"a chunk of 4 GiB":         {script{answers: [][]byte{append([]byte("ACKF"), 0xff, 0xff, 0xff, 0xff)}}, ErrTooLarge},
		"a chunk of 3 bytes":       {script{answers: [][]byte{append([]byte("ACKF"), 3, 0, 0, 0)}}, ErrMalformed},
		"an unknown chunk":         {script{answers: [][]byte{message("ACKX", u32(0))}}, ErrMalformed},
		"other request":            {script{answers: [][]byte{ack, opened, otherRequest}}, ErrMalformed},
		"a message too early":      {script{answers: [][]byte{ack, message("MSGF", u32(9, 7, 1, 1))}}, ErrMalformed},
		"another service":          {script{answers: [][]byte{ack, opened, part('F', []byte{1, 0, 0xaa, 1}, okHeader, u32(0))}}, ErrMalformed},
		"a fault":                  {script{answers: [][]byte{ack, opened, part('F', faulty)}}, BadServiceUnsupported},
		"a fault without a status": {script{answers: [][]byte{ack, opened, part('F', []byte{1, 0, 0x8d, 1}, okHeader)}}, ErrMalformed},
		"it aborts":                {script{answers: [][]byte{ack, opened, part('A', u32(0x80020000), text(""))}}, StatusCode(0x80020000)},
		"too many chunks":          {script{answers: [][]byte{ack, opened, bytes.Repeat(part('C'), 50_000)}}, ErrTooLarge},
		"1.2 MB":                   {script{answers: [][]byte{ack, opened, large}}, ErrTooLarge},
		"two billion servers":      {script{answers: [][]byte{ack, opened, part('F', responseID, okHeader, u32(0x7fffffff))}}, ErrTooLarge},
		"an answer without end":    {script{answers: [][]byte{ack, opened, noServer[:len(noServer)-2]}, hold: true}, os.ErrDeadlineExceeded},
		"a byte at a time":         {script{answers: [][]byte{ack, opened, noServer}, slow: slow, hold: true}, os.ErrDeadlineExceeded},
		"it ends in an answer":     {script{answers: [][]byte{ack, opened, noServer[:30]}}, io.EOF},
		"it ends between chunks":   {script{answers: [][]byte{ack, opened, part('C', responseID, okHeader, u32(0))}}, io.ErrUnexpectedEOF},
		"an answer too early":      {script{answers: [][]byte{ack, noServer}}, ErrMalformed},
		"a greeting as an answer":  {script{answers: [][]byte{ack, opened, message("OPNF", kilobytes(9))}}, ErrMalformed},
		"a channel as an answer": {
			script{answers: [][]byte{ack, opened, message("OPNF", u32(9, 0, 0, 0, 1, 2), responseID, okHeader, u32(0))}}, ErrMalformed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			limit := time.Minute
			if tc.script.hold {
				limit = 500 * time.Millisecond
			}
			if _, err := tc.script.find(t, limit); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	began := time.Now()
	if _, err := Open(ctx, client, "opc.tcp://x"); err == nil || time.Since(began) > 10*time.Second {
		t.Errorf("got %v after %v, want an error as soon as the context is canceled", err, time.Since(began))
	}
}

// TestSecondCall makes two calls over a channel. The first answer has more chunks than its
// list needs.
func TestSecondCall(t *testing.T) {
	second := message("MSGF", u32(9, 7, 2, 3), responseID, okHeader, u32(0))
	s := script{answers: [][]byte{ack, opened, append(part('C', responseID, okHeader, u32(0)), part('F')...), second}, hold: true}
	channel, err := s.open(t.Context(), t)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := channel.FindServers(func(a Application) { t.Errorf("found %+v", a) }); err != nil {
			t.Error(err)
		}
	}
}

// TestLongLists checks that a list with one element too many is refused when it begins.
func TestLongLists(t *testing.T) {
	for name, tc := range map[string]struct {
		call   func(*Channel) error
		answer []byte
	}{
		"servers": {
			func(c *Channel) error { return c.FindServers(func(Application) {}) },
			part('F', responseID, okHeader, u32(maxApplications+1)),
		},
		"records": {
			func(c *Channel) error { return c.FindServersOnNetwork(func(Application) {}) },
			part('F', []byte{1, 0, 0xb1, 0x2f}, okHeader, u32(0, 0, maxApplications+1)),
		},
		"endpoints": {
			func(c *Channel) error { return c.GetEndpoints("opc.tcp://x", func(Endpoint) {}) },
			part('F', []byte{1, 0, 0xaf, 1}, okHeader, u32(maxEndpoints+1)),
		},
		"URLs of a server": {
			func(c *Channel) error { return c.FindServers(func(Application) {}) },
			part('F', responseID, okHeader, u32(1, 0, 0), []byte{0}, u32(0, 0, 0, maxURLsPerApplication+1)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			channel, err := script{answers: [][]byte{ack, opened, tc.answer}, hold: true}.open(t.Context(), t)
			if err != nil {
				t.Fatal(err)
			}
			if err := tc.call(channel); !errors.Is(err, ErrTooLarge) {
				t.Errorf("got %v, want %v", err, ErrTooLarge)
			}
		})
	}
}

// FuzzConnection answers with any bytes. The client must return, not panic, and allocate
// no more than a multiple of what it receives.
func FuzzConnection(f *testing.F) {
	f.Add(append(append(append([]byte{}, ack...), opened...), part('F', responseID, okHeader, u32(0))...))
	f.Add(append(append([]byte{}, ack...), message("ERRF", u32(0x80830000), text("no"))...))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		client, server := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, server) }()
		go func() {
			defer server.Close()
			_, _ = server.Write(answer)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		before := allocated()
		channel, err := Open(ctx, client, "opc.tcp://x")
		if err != nil {
			client.Close()
		} else {
			if channel.FindServers(func(Application) {}) == nil {
				_ = channel.GetEndpoints("opc.tcp://x", func(Endpoint) {})
			}
			channel.Close()
		}
		if used, limit := allocated()-before, uint64(64<<10+64*len(answer)); used > limit {
			t.Errorf("%d bytes made it allocate %d bytes, more than %d", len(answer), used, limit)
		}
	})
}

// allocated returns the bytes that this process has allocated since its start.
func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}
