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
	// Patience bounds how long the handler may take to register, to send a list, to
	// refuse, or to end a call; 10 s if 0.
	Patience time.Duration
	// Quiet is how long a call is observed after the first list; 1 s if 0.
	Quiet time.Duration
}

func (c Case) withDefaults() Case {
	c.Patience, c.Quiet = cmp.Or(c.Patience, 10*time.Second), cmp.Or(c.Quiet, time.Second)
	return c
}

// Result says whether a handler keeps a rule of the contract. docs/handlers.md lists the
// rules.
type Result struct {
	Rule string
	// Err is why the handler breaks the rule; nil if it keeps it.
	Err error
	// Skipped is why the rule was not checked; empty if it was.
	Skipped string
	// Took is how long the check took.
	Took time.Duration
}
