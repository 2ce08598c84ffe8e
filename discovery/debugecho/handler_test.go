package debugecho

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"akri.sh/akri/discovery"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct{ details, want string }{
		"a list":          {"descriptions: [foo0, foo1]", "foo0 foo1"},
		"a list in lines": {"descriptions:\n- foo0\n- \"1\"\n", "foo0 1"},
		"an empty list":   {"descriptions: []", ""},
		"nothing":         {"", "descriptions is missing"},
		"a slip":          {"discriptions: [foo0]", "descriptions is missing"},
		"a text":          {"descriptions: foo0", "want YAML with a list of texts"},
		"a number":        {"descriptions: [1]", "1"},
		"an empty text":   {"descriptions: [foo0, \"\"]", "descriptions[1] is empty"},
		"a repetition":    {"descriptions: [foo0, foo0]", "descriptions[1] repeats"},
		"not YAML":        {"descriptions: [", "want YAML with a list of texts"},
	} {
		t.Run(name, func(t *testing.T) {
			texts, err := parse(tc.details)
			if err != nil {
				if tc.want == "" || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("refused by %q, want %q", err, tc.want)
				}
				return
			}
			if got := strings.Join(texts, " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

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
		ended <- Handler{AvailabilityFile: file}.Discover(ctx, discovery.Request{Details: "descriptions: [foo0, foo1]"}, func(devices []discovery.Device) error {
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
		case <-time.After(5 * time.Second): // sooner than the regular look
			t.Fatalf("nothing is sent, want %d devices", count)
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
	if err := <-ended; err != context.Canceled {
		t.Errorf("ended by %v", err)
	}
}
