package mqtt

import (
	"crypto/tls"
	"log/slog"
	"sync"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
)

// localBroker is a broker in this process.
type localBroker struct {
	*mochi.Server
	address string
	stop    func()
}

// startBroker starts a broker at an address, which may have the port 0, until the test ends
// or it is closed. hook decides who may do what; nil for everybody everything.
func startBroker(t testing.TB, address string, hook mochi.Hook, secure *tls.Config) *localBroker {
	t.Helper()
	capabilities := mochi.NewDefaultServerCapabilities()
	capabilities.MaximumClientWritesPending = 1 << 16 // it drops messages for clients that have to wait for a CPU
	b := &localBroker{Server: mochi.New(&mochi.Options{
		InlineClient: true, Logger: slog.New(slog.DiscardHandler), Capabilities: capabilities,
	})}
	if hook == nil {
		hook = new(auth.AllowHook)
	}
	if err := b.AddHook(hook, nil); err != nil {
		t.Fatal(err)
	}
	listener := listeners.NewTCP(listeners.Config{ID: "tcp", Address: address, TLSConfig: secure})
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := b.AddListener(listener)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // the port of the former broker is not free yet
	}
	b.address = listener.Address()
	if err := b.Serve(); err != nil {
		t.Fatal(err)
	}
	b.stop = sync.OnceFunc(func() { _ = b.Close() })
	t.Cleanup(b.stop)
	return b
}

// retain publishes a retained message.
func (b *localBroker) retain(t testing.TB, topic, payload string) {
	t.Helper()
	if err := b.Publish(topic, []byte(payload), true, 0); err != nil {
		t.Fatal(err)
	}
}

// url returns the broker's URL.
func (b *localBroker) url() string { return "tcp://" + b.address }
