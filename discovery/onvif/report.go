package onvif

import (
	"log/slog"
	"sync"
)

// reporter counts failures, and has the first of its kind of a host or a step in the log. It is
// safe for concurrent use.
type reporter struct {
	count func(reason string)
	log   *slog.Logger

	mu   sync.Mutex
	told map[[2]string]bool // by reason, then by host or step
}

func newReporter(count func(string), log *slog.Logger) *reporter {
	return &reporter{count: count, log: log, told: map[[2]string]bool{}}
}

// tell reports whether a failure is the first of its kind, and logs it if it is.
func (r *reporter) tell(reason, what string, err error) bool {
	k := [2]string{reason, what}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told[k] {
		return false
	}
	if len(r.told) < maxToldFailures {
		r.told[k] = true
		r.log.Warn("A camera, or a part of the network, does not work as usual", "what", what, "reason", reason, "err", err)
	}
	return true
}

// failed counts a failure.
func (r *reporter) failed(reason, what string, err error) {
	r.count(reason)
	r.tell(reason, what, err)
}

// once counts a failure about a device that works otherwise, so that it does not look like an
// error for ever.
func (r *reporter) once(reason, what string, err error) {
	if r.tell(reason, what, err) {
		r.count(reason)
	}
}

// check reports whether there is an error in a step that uses the network. If there is none, the
// next one is the first again.
func (r *reporter) check(step string, err error) bool {
	if err != nil {
		r.failed(failedSocket, step, err)
		return true
	}
	r.mu.Lock()
	delete(r.told, [2]string{failedSocket, step})
	r.mu.Unlock()
	return false
}
