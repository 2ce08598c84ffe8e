package debugecho

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/debugecho/details"
)

const (
	// Name is the handler's name in Configurations.
	Name = "debugEcho"
	// Property is the only property of its devices.
	Property = "DEBUG_ECHO_DESCRIPTION"
	// DefaultAvailabilityFile is the default of Handler.AvailabilityFile.
	DefaultAvailabilityFile = "/tmp/debug-echo-availability.txt"
	// SharedVariable is the environment variable that says whether several nodes see
	// the same devices: true or false.
	SharedVariable = "DEBUG_ECHO_INSTANCES_SHARED"
	// AvailabilityVariable is the environment variable with the availability file.
	AvailabilityVariable = "DEBUG_ECHO_AVAILABILITY_FILE"

	offlineMark = "OFFLINE"
	// pollInterval is how often the file is read. The kernel permits few watches of files
	// to all programs of a node, and here each Configuration would need one.
	pollInterval = 200 * time.Millisecond
)

// Handler reports the devices that a Configuration lists. The zero value uses
// DefaultAvailabilityFile.
type Handler struct {
	// AvailabilityFile makes all devices disappear while it contains OFFLINE.
	AvailabilityFile string
}

var _ discovery.Handler = Handler{}

// ParseShared parses the value of SharedVariable, whose name the error has.
func ParseShared(text string) (bool, error) {
	shared, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("%s is %q: set it to true if several nodes see the same devices, or to false", SharedVariable, text)
	}
	return shared, nil
}

// Discover implements [discovery.Handler].
func (h Handler) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	descriptions, err := details.Parse(request.Details)
	if err != nil {
		return discovery.Invalid("%w", err)
	}
	file := h.AvailabilityFile
	if file == "" {
		file = DefaultAvailabilityFile
	}
	tick := time.NewTicker(pollInterval)
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
		case <-tick.C:
		}
	}
}

// available reports whether the devices are available. They are if the file cannot be
// read.
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
		devices = append(devices, discovery.Device{ID: text, Properties: map[string]string{Property: text, discovery.DisplayName: text}})
	}
	return devices
}
