package debugecho

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/handlertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAvailability(t *testing.T) {
	file := filepath.Join(t.TempDir(), "availability")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	lists, ended := make(chan []discovery.Device, 10), make(chan error, 1)
	go func() {
		request := discovery.Request{Details: "descriptions: [foo0, foo1]"}
		ended <- Handler{AvailabilityFile: file}.Discover(ctx, request, func(devices []discovery.Device) error {
			lists <- devices
			return nil
		})
	}()
	want := func(count int) []discovery.Device {
		t.Helper()
		select {
		case devices := <-lists:
			if len(devices) != count {
				t.Fatalf("%d devices, want %d", len(devices), count)
			}
			return devices
		case <-time.After(30 * time.Second):
			t.Fatalf("no list was sent, want %d devices", count)
			return nil
		}
	}
	if first := want(2)[0]; first.ID != "foo0" || first.Properties[Property] != "foo0" {
		t.Errorf("the first device is %+v", first)
	}
	write("OFFLINE\n")
	want(0)
	write("ONLINE")
	want(2)
	write("OFFLINE")
	want(0)
	os.Remove(file)
	want(2)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended by %v", err)
	}
}

func TestConformance(t *testing.T) {
	file := filepath.Join(t.TempDir(), "availability")
	handlertest.Run(t, Handler{AvailabilityFile: file}, handlertest.Case{
		Details: "descriptions: [foo0, foo1]", MinDevices: 2,
		Invalid: []string{"", "discriptions: [foo0]", "descriptions: [foo0, foo0]", "descriptions: ["},
		Change:  func(context.Context) error { return os.WriteFile(file, []byte("OFFLINE"), 0o600) },
	})
}
