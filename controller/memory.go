package controller

import (
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// memory holds the statuses that were written last: the cache may not have them
// yet, and a pass that went by an older one would write again. It holds one for
// each object that exists.
type memory[S any] struct {
	mutex   sync.Mutex
	written map[types.NamespacedName]remembered[S]
}

type remembered[S any] struct {
	uid    types.UID
	status S
}

func newMemory[S any]() *memory[S] {
	return &memory[S]{written: map[types.NamespacedName]remembered[S]{}}
}

// latest is the status written last, or else the one in the cache.
func (m *memory[S]) latest(name types.NamespacedName, uid types.UID, cached S) S {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if last, found := m.written[name]; found && last.uid == uid {
		return last.status
	}
	return cached
}

func (m *memory[S]) remember(name types.NamespacedName, uid types.UID, status S) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.written[name] = remembered[S]{uid: uid, status: status}
}

// forget returns the UID of the object that has gone, if its status was written.
func (m *memory[S]) forget(name types.NamespacedName) types.UID {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	last := m.written[name]
	delete(m.written, name)
	return last.uid
}

// retry is the error that lets a parent be looked at again, with back-off, while
// another attempt may mend its problems; nil if only a person can.
func retry(problems []problem) error {
	var again []string
	for _, problem := range problems {
		if problem.heals {
			again = append(again, problem.message)
		}
	}
	if len(again) == 0 {
		return nil
	}
	return fmt.Errorf("not everything could be applied: %s", strings.Join(again, "; "))
}
