package debugecho

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/debugecho/details"
	"akri.sh/akri/discovery/internal/filewatch"
)

const (
	// Name is the handler's name in Configurations.
	Name = "debugEcho"
	// Property is the one property of its devices.
	Property = "DEBUG_ECHO_DESCRIPTION"
	// DefaultAvailabilityFile is where OFFLINE is looked for.
	DefaultAvailabilityFile = "/tmp/debug-echo-availability.txt"

	offlineMark = "OFFLINE"
	// lookAgain is how soon a change is seen where the file cannot be watched.
	lookAgain = 10 * time.Second
)

// Handler finds what it is told to find. The zero value looks at
// DefaultAvailabilityFile.
type Handler struct {
	// AvailabilityFile makes all devices vanish while it holds OFFLINE.
	AvailabilityFile string
}

var _ discovery.Handler = Handler{}

// Discover implements discovery.Handler.
func (h Handler) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	descriptions, err := details.Parse(request.Details)
	if err != nil {
		return discovery.Invalid("%w", err)
	}
	file := h.AvailabilityFile
	if file == "" {
		file = DefaultAvailabilityFile
	}
	changed, stop, err := filewatch.File(file)
	defer stop()
	if err != nil {
		slog.Warn("looking at intervals for the availability of debug devices", "err", err)
	}

	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for sent, online := false, false; ; {
		if now := available(file); !sent || now != online {
			sent, online = true, now
			if err := send(echo(descriptions, online)); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-tick.C:
		}
	}
}

// available tells whether the devices are there. A file that cannot be read
// takes nothing away.
func available(file string) bool {
	content, err := os.ReadFile(file)
	return err != nil || !strings.Contains(string(content), offlineMark)
}

func echo(descriptions []string, online bool) []discovery.Device {
	if !online {
		return nil
	}
	devices := make([]discovery.Device, 0, len(descriptions))
	for _, text := range descriptions {
		devices = append(devices, discovery.Device{ID: text, Properties: map[string]string{Property: text}})
	}
	return devices
}
