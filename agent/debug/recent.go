package debug

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"akri.sh/akri/internal/text"
)

const (
	// maxRecords bounds the records that are kept, and maxDetails the bytes of the
	// attributes of each.
	maxRecords = 50
	maxDetails = 1024
)

// Recent keeps the latest warnings and errors of a log. The zero value is ready for
// use, and a nil Recent is empty. It is safe for concurrent use.
type Recent struct {
	mu      sync.Mutex
	records []Record // the latest one is the last
	buffer  bytes.Buffer
}

// Handler returns a handler that keeps records and passes them to next.
func (r *Recent) Handler(next slog.Handler) slog.Handler {
	return &recorder{recent: r, next: next, format: slog.NewTextHandler(&r.buffer, &slog.HandlerOptions{ReplaceAttr: attributesOnly})}
}

// attributesOnly removes what a Record has in fields of its own.
func attributesOnly(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
		return slog.Attr{}
	}
	return a
}

// Records returns the records, latest first.
func (r *Recent) Records() []Record {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	records := slices.Clone(r.records)
	slices.Reverse(records)
	return records
}

// add adds a record, or counts it if it is known. The caller holds the lock.
func (r *Recent) add(record Record) {
	known := slices.IndexFunc(r.records, func(other Record) bool {
		return other.Level == record.Level && other.Message == record.Message && other.Details == record.Details
	})
	switch {
	case known >= 0:
		record.First, record.Count = r.records[known].First, r.records[known].Count+1
		r.records = slices.Delete(r.records, known, known+1)
	case len(r.records) >= maxRecords:
		drop := r.leastUseful()
		r.records = slices.Delete(r.records, drop, drop+1)
	}
	r.records = append(r.records, record)
}

// leastUseful returns the oldest record of the most frequent message, so that one
// error with many different details does not displace all others.
func (r *Recent) leastUseful() int {
	counts := map[string]int{}
	for _, record := range r.records {
		counts[record.Message]++
	}
	drop := 0
	for i, record := range r.records {
		if counts[record.Message] > counts[r.records[drop].Message] {
			drop = i
		}
	}
	return drop
}

// recorder is a slog.Handler.
type recorder struct {
	recent *Recent
	next   slog.Handler
	format slog.Handler // writes to the buffer
}

func (h *recorder) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || h.next.Enabled(ctx, level)
}

func (h *recorder) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelWarn {
		h.keep(ctx, record)
	}
	if !h.next.Enabled(ctx, record.Level) {
		return nil
	}
	return h.next.Handle(ctx, record)
}

func (h *recorder) keep(ctx context.Context, record slog.Record) {
	r := h.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buffer.Reset()
	if err := h.format.Handle(ctx, record); err != nil {
		return // never: it writes to memory
	}
	r.add(Record{
		Level: record.Level.String(), Message: text.Truncate(record.Message, maxDetails),
		Details: text.Truncate(strings.TrimSpace(r.buffer.String()), maxDetails),
		First:   record.Time, Last: record.Time, Count: 1,
	})
}

func (h *recorder) WithAttrs(attributes []slog.Attr) slog.Handler {
	return &recorder{h.recent, h.next.WithAttrs(attributes), h.format.WithAttrs(attributes)}
}

func (h *recorder) WithGroup(name string) slog.Handler {
	return &recorder{h.recent, h.next.WithGroup(name), h.format.WithGroup(name)}
}
