package wsdiscovery

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/ipv4"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRun is a conversation on the loopback device: Hello, Probe, Bye.
func TestRun(t *testing.T) {
	device, err := net.InterfaceByName("lo")
	if err != nil {
		t.Skip(err)
	}
	listener, err := listen(t.Context(), device)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	target := hall
	target.UUID = strings.TrimPrefix(newID(), "urn:uuid:") // other tests use the group, too

	ctx, unplug := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, device, target) }()
	await(t, listener, ":Hello>", target.UUID)

	client, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	sender := ipv4.NewPacketConn(client)
	if err := errors.Join(sender.SetMulticastInterface(device), sender.SetMulticastLoopback(true)); err != nil {
		t.Fatal(err)
	}
	id := newID()
	message := strings.Replace(probe("", ""), "uuid:1", id, 1)
	if _, err := client.WriteTo([]byte(message), group); err != nil {
		t.Fatal(err)
	}
	answer := await(t, client, ":ProbeMatches>", target.UUID)
	for _, want := range []string{
		"<a:RelatesTo>" + id + "</a:RelatesTo>", "<d:XAddrs>" + target.XAddr + "</d:XAddrs>", target.Scopes[0],
		`xmlns:t0="http://www.onvif.org/ver10/network/wsdl"`, "<d:Types>t0:NetworkVideoTransmitter t1:Device</d:Types>",
	} {
		if !strings.Contains(answer, want) {
			t.Errorf("the answer lacks %s: %s", want, answer)
		}
	}
	unplug()
	await(t, listener, ":Bye>", target.UUID)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

// await reads from a socket until a message contains the texts.
func await(t *testing.T, socket net.PacketConn, texts ...string) string {
	t.Helper()
	if err := socket.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	packet := make([]byte, maxMessage)
next:
	for {
		n, _, err := socket.ReadFrom(packet)
		if err != nil {
			t.Fatalf("no message with %q: %v", texts, err)
		}
		for _, text := range texts {
			if !strings.Contains(string(packet[:n]), text) {
				continue next
			}
		}
		return string(packet[:n])
	}
}
