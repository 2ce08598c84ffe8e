package monitor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/monitor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script sends lists, and ends.
type script [][]discovery.Device

var errEnd = errors.New("the end of the script")

func (s script) Discover(_ context.Context, _ discovery.Request, send func([]discovery.Device) error) error {
	for _, list := range s {
		if err := send(list); err != nil {
			return err
		}
	}
	return errEnd
}

func device(id, property string) discovery.Device {
	return discovery.Device{ID: id, Properties: map[string]string{"P": property}}
}

func many(from, to int) []discovery.Device {
	var list []discovery.Device
	for i := from; i < to; i++ {
		list = append(list, device(fmt.Sprintf("many-%04d", i), ""))
	}
	return list
}

func TestWrap(t *testing.T) {
	for name, tc := range map[string]struct {
		lists                   script
		log                     string // messages and attributes, without time and level
		appeared, changed, gone float64
	}{
		"an empty list": {script{nil, {}}, "", 0, 0, 0},
		"come, change and go": {
			script{{device("b", ""), device("a", "secret")}, {device("a", "secret"), device("b", "")}, {device("a", "other")}, nil},
			`msg="A device appeared" id=a
msg="A device appeared" id=b
msg="A device changed" id=a
msg="A device disappeared" id=b
msg="A device disappeared" id=a
`, 2, 1, 2,
		},
		"no properties are as good as none": {script{{{ID: "a"}}, {{ID: "a", Properties: map[string]string{}}}},
			"msg=\"A device appeared\" id=a\n", 1, 0, 0},
		"a large site": {script{many(0, 1000), many(0, 1000), many(500, 1000), many(500, 1001)},
			`msg="Devices changed" appeared=1000 disappeared=0 changed=0 devices=1000
msg="Devices changed" appeared=0 disappeared=500 changed=0 devices=500
msg="A device appeared" id=many-1000
`, 1001, 0, 500},
		"an id with lines": {script{{{ID: "a\nmsg=forged"}}}, `msg="A device appeared" id="a\nmsg=forged"` + "\n", 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewPedanticRegistry()
			var out bytes.Buffer
			log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
					return slog.Attr{}
				}
				return a
			}}))
			sent := 0
			err := monitor.New(registry).Wrap(tc.lists, log).Discover(t.Context(), discovery.Request{}, func([]discovery.Device) error {
				sent++
				return nil
			})
			if !errors.Is(err, errEnd) || sent != len(tc.lists) {
				t.Errorf("%d lists were sent, and then %v", sent, err)
			}
			if out.String() != tc.log {
				t.Errorf("the log is\n%swant\n%s", out.String(), tc.log)
			}
			for name, want := range map[string]float64{
				"akri_handler_device_changes_total appeared":    tc.appeared,
				"akri_handler_device_changes_total changed":     tc.changed,
				"akri_handler_device_changes_total disappeared": tc.gone,
				"akri_handler_devices":                          0,
				"akri_handler_requests":                         0,
			} {
				if got := values(t, registry)[name]; got != want {
					t.Errorf("%s is %v, want %v", name, got, want)
				}
			}
		})
	}
}

// TestGauges checks the metrics while requests are open, and that an error of send
// reaches the handler.
func TestGauges(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	handler := monitor.New(registry).Wrap(script{many(0, 3)}, slog.New(slog.DiscardHandler))
	errGone := errors.New("the agent is gone")
	err := handler.Discover(t.Context(), discovery.Request{}, func([]discovery.Device) error {
		if got := values(t, registry); got["akri_handler_devices"] != 3 || got["akri_handler_requests"] != 1 {
			t.Errorf("the metrics are %v", got)
		}
		return errGone
	})
	if !errors.Is(err, errGone) {
		t.Errorf("got %v", err)
	}
}

// TestNil checks that a handler works without metrics.
func TestNil(t *testing.T) {
	var none *monitor.Metrics
	none.Scanned(time.Now())
	none.Failed("timeout")
	registry := prometheus.NewPedanticRegistry()
	some := monitor.New(registry)
	some.Scanned(time.Now())
	some.Failed("timeout")
	if got := values(t, registry); got["akri_handler_scan_duration_seconds"] != 1 || got["akri_handler_failures_total timeout"] != 1 {
		t.Errorf("the metrics are %v", got)
	}
}

// values returns the values of metrics, and the counts of histograms, by name and label.
func values(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			all[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return all
}
