package apitest

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// LiveHeap returns how many bytes the live objects take.
func LiveHeap() int {
	runtime.GC()
	runtime.GC() // what finalizers held
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// PeakHeap makes the Go runtime collect garbage often. The function that it returns ends that,
// and returns how many bytes the live objects took, at most.
func PeakHeap() (peak func() int) {
	percent := debug.SetGCPercent(10)
	done, result := make(chan struct{}), make(chan int, 1)
	go func() {
		var most uint64
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		ticks := time.NewTicker(2 * time.Millisecond)
		defer ticks.Stop()
		for {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			select {
			case <-done:
				result <- int(most)
				return
			case <-ticks.C:
			}
		}
	}()
	return func() int {
		debug.SetGCPercent(percent)
		close(done)
		return <-result
	}
}

// KeptBytes returns how many bytes what read keeps of a JSON text takes.
func KeptBytes(t testing.TB, text []byte, read func(text []byte) (any, error)) int {
	t.Helper()
	before := LiveHeap()
	kept := make([]any, 10)
	for i := range kept {
		var err error
		if kept[i], err = read(text); err != nil {
			t.Fatal(err)
		}
	}
	each := (LiveHeap() - before) / len(kept)
	runtime.KeepAlive(kept)
	runtime.KeepAlive(text)
	return each
}

// CheckKeptMetadata checks that what read keeps of objects with huge metadata, as JSON, takes
// little memory: others write metadata, as much as the API server accepts.
func CheckKeptMetadata(t testing.TB, read func(text []byte) (any, error)) {
	t.Helper()
	for name, metadata := range hugeMetadata() {
		text, err := json.Marshal(map[string]any{"metadata": metadata})
		if err != nil {
			t.Fatal(err)
		}
		if each := KeptBytes(t, text, read); each > 16<<10 {
			t.Errorf("%s: %d KB of JSON take %d KB", name, len(text)/1000, each/1000)
		}
	}
}
