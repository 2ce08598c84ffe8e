package embeddable

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"akri.sh/akri/discovery/debugecho"
	"akri.sh/akri/discovery/onvif"
	"akri.sh/akri/discovery/opcua"
	"akri.sh/akri/discovery/udev"
)

// defaults return the handlers as their commands run them without flags. The keys are
// the handlers' names.
var defaults = map[string]func(environment func(string) string) (Handler, error){
	debugecho.Name: func(environment func(string) string) (Handler, error) {
		shared, err := debugecho.ParseShared(environment(debugecho.SharedVariable))
		if err != nil {
			return Handler{}, fmt.Errorf("environment variable %w", err)
		}
		return DebugEcho(shared, environment(debugecho.AvailabilityVariable)), nil
	},
	onvif.Name: func(func(string) string) (Handler, error) { return ONVIF(), nil },
	opcua.Name: func(func(string) string) (Handler, error) { return OPCUA(nil), nil },
	udev.Name:  func(func(string) string) (Handler, error) { return UDEV(udev.Options{}), nil },
}

// Names returns the names of the handlers, sorted.
func Names() []string { return slices.Sorted(maps.Keys(defaults)) }

// Select returns the handlers with some names, in that order, with the options that
// their commands have by default. It returns an error for a name that is unknown or
// repeated, and if an environment variable is missing that the handler needs.
func Select(names []string, environment func(string) string) ([]Handler, error) {
	var selected []Handler
	for i, name := range names {
		create, found := defaults[name]
		if !found {
			return nil, fmt.Errorf("%q: not a handler that agents can run: use %s, and a DaemonSet for others",
				name, strings.Join(Names(), ", "))
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("%q: listed twice: remove one", name)
		}
		handler, err := create(environment)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		selected = append(selected, handler)
	}
	return selected, nil
}
