package objects

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func answer(length int) Answer {
	return Answer(`{"metadata":{"name":"x"},"data":{"k":"` + strings.Repeat("x", length) + `"}}`)
}

// Large objects are decoded and used one at a time; small ones do not wait for them.
func TestLargeObjectsTakeTurns(t *testing.T) {
	large, small := answer(maxUnordered), answer(1)
	var decoding, most, read atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			err := large.Read(func(*unstructured.Unstructured) {
				most.Store(max(most.Load(), decoding.Add(1)))
				if err := small.Read(func(object *unstructured.Unstructured) { // would wait for ever
					if object.GetName() == "x" {
						read.Add(1)
					}
				}); err != nil {
					t.Error(err)
				}
				decoding.Add(-1)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if most.Load() != 1 || read.Load() != 8 {
		t.Errorf("%d large objects at a time, want 1; %d small ones were read meanwhile, want 8", most.Load(), read.Load())
	}
}

// Those who wait get their turn after an object that cannot be read, or makes its use panic.
func TestTurnEnds(t *testing.T) {
	if err := Answer(strings.Repeat("x", 2*maxUnordered)).Read(func(*unstructured.Unstructured) {}); err == nil {
		t.Error("what is no object was read")
	}
	func() {
		defer func() { _ = recover() }()
		_ = answer(maxUnordered).Read(func(*unstructured.Unstructured) { panic("use") })
	}()
	if !turn.TryLock() {
		t.Fatal("the turn has not ended")
	}
	turn.Unlock()
}
