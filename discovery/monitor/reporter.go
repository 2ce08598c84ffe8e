package monitor

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"akri.sh/akri/internal/text"
)

const (
	// maxTold bounds the failures that a reporter remembers, and how many it logs in toldTime, so
	// that names that someone makes up fill neither the memory nor the log, and do not silence it
	// for ever either.
	maxTold  = 1000
	toldTime = time.Hour
	// maxWhat bounds the bytes of what has failed.
	maxWhat = 1024
)

// Reporter counts the failures of a handler, and has each in the log once, until it is mended. It
// is safe for concurrent use.
type Reporter struct {
	count   func(reason string)
	log     *slog.Logger
	message string
	room    *rate.Limiter

	mu   sync.Mutex
	told map[[2]string]bool // by key
}

// NewReporter returns a reporter of failures with a common message. The log is slog.Default() if it
// is nil.
func NewReporter(count func(reason string), log *slog.Logger, message string) *Reporter {
	room := rate.NewLimiter(rate.Every(toldTime/maxTold), maxTold)
	return &Reporter{count: count, log: cmp.Or(log, slog.Default()), message: message, room: room, told: map[[2]string]bool{}}
}

// key returns the key of a failure in told.
func key(kind, what string) [2]string { return [2]string{kind, text.Truncate(what, maxWhat)} }

// tell reports whether a failure is the first of its kind, and logs it if it is.
func (r *Reporter) tell(k [2]string, reason string, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told[k] {
		return false
	}
	if r.room.Allow() {
		if len(r.told) == maxTold {
			clear(r.told) // what still fails is told again
		}
		r.told[k] = true
		r.log.Warn(r.message, "what", k[1], "reason", reason, "err", text.OneLine(err.Error()))
	}
	return true
}

// Failed counts a failure of a host, a name or a step.
func (r *Reporter) Failed(reason, what string, err error) {
	r.count(reason)
	r.tell(key(reason, what), reason, err)
}

// Once counts a failure only if it is the first of its kind: what works otherwise, or repeats
// itself, must not look like an error for ever.
func (r *Reporter) Once(reason, what string, err error) {
	if r.tell(key(reason, what), reason, err) {
		r.count(reason)
	}
}

// Check reports whether there is an error, which it counts. If there is none, what has failed is
// mended, whatever the reason was, and the next failure is the first again.
func (r *Reporter) Check(reason, what string, err error) bool {
	if err != nil {
		r.count(reason)
		r.tell(key("", what), reason, err)
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.told, key("", what))
	return false
}
