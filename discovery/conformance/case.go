package conformance

import (
	"cmp"
	"context"
	"time"
)

// Case is what a handler is checked with.
type Case struct {
	// Details are discoveryDetails that the handler accepts.
	Details string
	// Properties are the discoveryProperties that it needs.
	Properties map[string][]byte
	// Invalid are discoveryDetails that the handler must refuse.
	Invalid []string
	// MinDevices is how many devices the first call must find within Patience; further
	// lists are awaited. Without devices, little is checked about them.
	MinDevices int
	// Change, if not nil, adds or removes devices while a call is open. The checks then
	// find handlers that send only what has changed.
	Change func(ctx context.Context) error
	// Patience bounds how long the handler may take to send a list, to refuse, or to
	// end a call; 10 s if 0.
	Patience time.Duration
	// Quiet is how long a call is observed after the first list; 1 s if 0.
	Quiet time.Duration
}

func (c Case) patience() time.Duration { return cmp.Or(c.Patience, 10*time.Second) }
func (c Case) quiet() time.Duration    { return cmp.Or(c.Quiet, time.Second) }

// Rule is a part of the contract.
type Rule string

// The rules of Check.
const (
	// Connects: the endpoint speaks gRPC.
	Connects Rule = "connects"
	// FirstList: a call sends a list at once, even if it is empty.
	FirstList Rule = "first list"
	// StaysOpen: a call goes on until the agent cancels it.
	StaysOpen Rule = "stays open"
	// DeviceIDs: each device has an id that is unique in its list.
	DeviceIDs Rule = "device ids"
	// DeviceProperties: properties can be environment variables of containers.
	DeviceProperties Rule = "device properties"
	// DeviceFiles: paths are absolute, and permissions are a subset of rwm.
	DeviceFiles Rule = "mounts and device files"
	// Overlapping: calls do not wait for each other.
	Overlapping Rule = "overlapping calls"
	// SendsChanges: an open call sends a list when the devices have changed.
	SendsChanges Rule = "sends changes"
	// SameList: each call gets the same list, so ids are stable and lists are full.
	SameList Rule = "same list for each call"
	// Independent: the end of one call does not end another.
	Independent Rule = "independent calls"
	// Released: cancelled calls leave nothing behind that keeps others from working.
	Released Rule = "cancelled calls are released"
	// Refusal: wrong discoveryDetails are refused with INVALID_ARGUMENT and a text.
	Refusal Rule = "refusal"
	// Survives: the handler still works after a refusal.
	Survives Rule = "works after a refusal"
)

// The rules of CheckRegistration.
const (
	// Registers: the handler registers with the agent.
	Registers Rule = "registers"
	// ValidRegistration: the registration has what an agent needs.
	ValidRegistration Rule = "valid registration"
	// RegistersAgain: the handler registers with an agent that has restarted.
	RegistersAgain Rule = "registers again"
)

// Result says whether a handler keeps a rule.
type Result struct {
	Rule Rule
	// Err is why the handler breaks the rule; nil if it keeps it.
	Err error
	// Skipped is why the rule was not checked; empty if it was.
	Skipped string
	// Took is how long the check took.
	Took time.Duration
}

// Failed reports whether one of the results is an error.
func Failed(results []Result) bool {
	for _, result := range results {
		if result.Err != nil {
			return true
		}
	}
	return false
}
