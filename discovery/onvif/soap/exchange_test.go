package soap

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"akri.sh/akri/discovery/handlertest"
	"akri.sh/akri/discovery/onvif/envelope"
)

// device answers each connection with the next of some texts, and the last one again and
// again. It then closes the connection, unless it is to stay open.
func device(t *testing.T, open bool, answers ...string) (url string) {
	t.Helper()
	var count atomic.Int32
	return "http://" + handlertest.Listen(t, "127.0.0.1:0", func(connection net.Conn) {
		request, err := http.ReadRequest(bufio.NewReader(connection))
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, request.Body)
		fmt.Fprint(connection, answers[min(int(count.Add(1)), len(answers))-1])
		if open {
			_, _ = io.Copy(io.Discard, connection) // until the client closes it
		}
	}) + "/onvif/device_service"
}

// TestUnusualHTTP has answers that browsers and most clients of cameras read as well.
func TestUnusualHTTP(t *testing.T) {
	const ok, xml = "HTTP/1.1 200 OK\r\n", okEnvelope
	length := fmt.Sprintf("Content-Length: %d\r\n", len(xml))
	for name, answer := range map[string]string{
		"as it should be":                 ok + length + "\r\n" + xml,
		"zeros first":                     "\x00\x00" + ok + length + "\r\n" + xml,
		"an empty line first":             "\r\n" + ok + length + "\r\n" + xml,
		"a zero in a header":              ok + "Server: a\x00b\r\n" + length + "\r\n" + xml,
		"a zero in an empty line":         ok + length + "\x00\r\n" + xml,
		"a header without a colon":        ok + "Camera 7\r\n" + length + "\r\n" + xml,
		"a header with a strange name":    ok + "Über uns (c): 1\r\n" + length + "\r\n" + xml,
		"a space before the colon":        ok + "Content-Length : 9\r\n\r\n" + xml,
		"a folded header":                 ok + "Server: a\r\n  b: c\r\n" + length + "\r\n" + xml,
		"no status":                       xml,
		"no reason":                       "HTTP/1.1 200\r\n" + length + "\r\n" + xml,
		"an unknown status":               "HTTP/1.1 799 Fine\r\n" + length + "\r\n" + xml,
		"status 500":                      "HTTP/1.1 500 Internal Server Error\r\n" + length + "\r\n" + xml,
		"HTTP/1.0":                        "HTTP/1.0 200 OK\r\n\r\n" + xml,
		"HTTP/2 in words":                 "HTTP/2 200\r\n\r\n" + xml,
		"lines that end with LF":          "HTTP/1.1 200 OK\n" + strings.TrimRight(length, "\r\n") + "\n\n" + xml,
		"no length":                       ok + "\r\n" + xml,
		"no number as length":             ok + "Content-Length: many\r\n\r\n" + xml,
		"a length below zero":             ok + "Content-Length: -1\r\n\r\n" + xml,
		"a length that is too long":       ok + "Content-Length: 9000\r\n\r\n" + xml,
		"a length that is too short":      ok + "Content-Length: 90\r\n\r\n" + xml,
		"two lengths":                     ok + "Content-Length: 1\r\n" + length + "\r\n" + xml,
		"chunks":                          ok + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(xml), xml),
		"chunks, and a length":            ok + fmt.Sprintf("Content-Length: 3\r\nTransfer-Encoding: Chunked\r\n\r\n%x\n%s\n0\n\n", 380, xml),
		"chunks without an end":           ok + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(xml), xml),
		"chunks of another kind":          ok + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n0x%x\r\n%s\r\n", len(xml), xml),
		"chunks that are none":            ok + "Transfer-Encoding: chunked\r\n\r\n" + xml,
		"continue first":                  "HTTP/1.1 100 Continue\r\n\r\n" + ok + length + "\r\n" + xml,
		"compressed, they say":            ok + "Content-Encoding: gzip\r\n" + length + "\r\n" + xml,
		"zeros at the end":                ok + "\r\n" + xml + "\x00\x00",
		"a byte order mark":               ok + "\r\n\ufeff" + xml,
		"zeros within":                    ok + "\r\n" + strings.Replace(xml, "<GUID>1", "<GUID>\x001", 1),
		"control characters":              ok + "\r\n" + strings.Replace(xml, "<GUID>1", "<GUID>\x07\uffff1", 1),
		"a declaration of another XML":    ok + "\r\n" + `<?xml version="1.1" encoding="utf-16"?>` + xml,
		"words before the document":       ok + "\r\nOK\n\n" + `<?xml version="1.0"?>` + xml,
		"an ampersand":                    ok + "\r\n" + strings.Replace(xml, "<GUID>", "<Name>Tom & Co</Name><GUID>", 1),
		"an attribute without quotes":     ok + "\r\n" + strings.Replace(xml, "<GUID>", "<Name a=b>x</Name><GUID>", 1),
		"a prefix that is bound nowhere":  ok + "\r\n" + strings.ReplaceAll(xml, "GetThingResponse", "tds:GetThingResponse"),
		"a document without its end":      ok + "\r\n" + strings.Replace(xml, "</s:Envelope>", "", 1),
		"a document that is cut, and 500": "HTTP/1.1 500 No\r\n\r\n" + strings.Replace(xml, "</s:Body></s:Envelope>", "", 1),
	} {
		for _, open := range []bool{false, true} {
			endless := !strings.Contains(strings.ToLower(answer), "content-length") || strings.Contains(name, "too long")
			if open && endless && !strings.Contains(answer, "</s:Envelope>") {
				continue // nothing says that it has ended
			}
			got, err := New(Options{}).Do(t.Context(), Call{URL: device(t, open, answer)})
			if err != nil || strings.TrimSpace(got.Response.GUID) != "1" {
				t.Errorf("%s, open at the end %v: got %+v, %v", name, open, got.Response, err)
			}
		}
	}
	for name, answer := range map[string]string{
		"a challenge without a length": "HTTP/1.1 401 No\r\nWWW-Authenticate: Digest realm=a, nonce=b\r\n\r\n",
		"a refusal with a fault":       "HTTP/1.1 401 No\r\nContent-Length: 90\r\n\r\n<Envelope><Body><Fault>",
	} {
		if _, err := New(Options{}).Do(t.Context(), Call{URL: device(t, true, answer)}); !Unauthorized(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, answer := range map[string]string{
		"nothing":         "",
		"another service": "220 files.example FTP\r\n",
		"no SOAP":         "SIP/2.0 200 OK\r\n\r\n",
		"an empty answer": ok + "\r\n",
	} {
		if got, err := New(Options{}).Do(t.Context(), Call{URL: device(t, false, answer)}); err == nil || Alive(err) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// endless repeats a text after another one, and counts what is read of it.
type endless struct {
	first, again string
	count        int
}

func (e *endless) Read(into []byte) (n int, err error) {
	for n < len(into) {
		if e.first == "" {
			e.first = e.again
		}
		copied := copy(into[n:], e.first)
		n, e.first = n+copied, e.first[copied:]
	}
	e.count += n
	return n, nil
}

// TestHostileHTTP has answers that never end, also with a byte in each packet. What is read is
// bounded.
func TestHostileHTTP(t *testing.T) {
	const ok, chunked = "HTTP/1.1 200 OK\r\n", "Transfer-Encoding: chunked\r\n\r\n"
	for name, answer := range map[string]endless{
		"zeros":                       {"", "\x00", 0},
		"lines":                       {"", "\n", 0},
		"a line":                      {ok, "x", 0},
		"fields":                      {ok, "a:\n", 0},
		"one field":                   {ok, "Server: a\r\n", 0},
		"continue":                    {"", "HTTP/1.1 100 Continue\r\n\r\n", 0},
		"a chunk":                     {ok + chunked + "fffffff\r\n<a>", "x", 0},
		"chunks of a byte":            {ok + chunked, "1\r\nx\r\n", 0},
		"a chunk's header":            {ok + chunked + "3\r\n<a>\r\n", "1", 0},
		"the first chunk's header":    {ok + chunked, "1", 0},
		"a chunk's extension":         {ok + chunked + "3;", "a", 0},
		"a trailer":                   {ok + chunked + "0\r\n", "A: b\r\n", 0},
		"a body":                      {ok + "\r\n", "x", 0},
		"a body with a length":        {ok + "Content-Length: 9999999\r\n\r\n", "<a/>", 0},
		"a body longer than it says":  {ok + "Content-Length: 5\r\n\r\n<Envelope>", "<a/>", 0},
		"a body that begins again":    {"", "<Envelope>", 0},
		"a body of ends, nearly":      {"", "</Envelope<", 0},
		"a body with an end in parts": {"", "</", 0},
	} {
		for _, isSlow := range []bool{false, true} {
			source := answer
			var connection io.Reader = &source
			if isSlow {
				connection = iotest.OneByteReader(connection)
			}
			reader := bufio.NewReader(connection)
			_, header, err := readHeader(reader)
			if err == nil {
				_, _ = readBody(reader, header)
			}
			if source.count > 8*envelope.MaxBytes { // chunks of a byte have six bytes for it
				t.Errorf("%s, slowly %v: %d bytes are read", name, isSlow, source.count)
			}
		}
	}
	// An end tag arrives in many parts, after the length that was announced.
	source := strings.NewReader(ok + "Content-Length: 20\r\n\r\n" + okEnvelope + "never read")
	reader := bufio.NewReaderSize(iotest.OneByteReader(source), 16)
	_, header, err := readHeader(reader)
	if body, hasEnded := readBody(reader, header); err != nil || !hasEnded || string(body) != okEnvelope || source.Len() != len("never read") {
		t.Errorf("got %q, %v, %v, and %d bytes are left", body, hasEnded, err, source.Len())
	}
}

// TestConnectionsThatEnd has a device that closes each connection after its answer, which is
// what the last text is for, and one that closes one before it has answered.
func TestConnectionsThatEnd(t *testing.T) {
	answer := "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n" + okEnvelope
	client := New(Options{})
	for name, url := range map[string]string{
		"after each answer": device(t, false, answer),
		"before the first":  device(t, false, "", answer),
	} {
		for range 5 {
			if _, err := client.Do(t.Context(), Call{URL: url}); err != nil {
				t.Errorf("it closes the connection %s: %v", name, err)
			}
		}
	}
	if _, err := client.Do(t.Context(), Call{URL: device(t, false, "", "", answer)}); err == nil {
		t.Error("a call is repeated more than once")
	}
}
