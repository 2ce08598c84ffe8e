package instances

import (
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/metadata"
)

const readTimeout = 2 * time.Second

// minReadDelay and maxReadDelay bound the back-off after a read that has failed.
const minReadDelay, maxReadDelay = 100 * time.Millisecond, 10 * time.Second

// departure is the disappearance of an Instance.
type departure struct {
	version string // of the Instance as it disappeared; an earlier one if the watch missed that
	deleted bool   // it no longer exists; otherwise, the node may join it again
	at      time.Time
}

// after reports whether a response is from before the departure.
func (d departure) after(response *v0.Instance) bool {
	return time.Since(d.at) <= maxAnswerAge && (d.deleted || !metadata.IsNewer(response.ResourceVersion, d.version))
}

// depart records a departure, and drops those from which no response is under way. If it
// drops an answer, the Configuration is touched: who saw the answer took the node to be in
// the Instance. The caller holds mu.
func (s *Store) depart(instance *v0.Instance, deleted bool) {
	maps.DeleteFunc(s.departures, func(_ types.UID, d departure) bool { return time.Since(d.at) > maxAnswerAge })
	d := departure{instance.ResourceVersion, deleted, time.Now()}
	s.departures[instance.UID] = d
	name := NameOf(instance)
	if kept, found := s.answers[name]; found && kept.instance.UID == instance.UID && d.after(kept.instance) {
		delete(s.answers, name)
		s.touched(configurationOf(instance))
	}
}

// appeared handles a new or changed Instance in the watch; before is nil if it is new.
func (s *Store) appeared(before, instance *v0.Instance) {
	if before == nil || concerns(before, instance, s.node) {
		s.touched(configurationOf(instance))
	}
	name := NameOf(instance)
	s.mu.Lock()
	defer s.mu.Unlock()
	if former, found := s.gone[name]; found {
		delete(s.gone, name)
		if former.UID != instance.UID {
			s.notifyDeleted(former)
		}
	}
	s.handler(Changed, instance)
}

// disappeared handles an Instance that the watch no longer shows.
func (s *Store) disappeared(instance *v0.Instance) {
	s.mu.Lock()
	s.depart(instance, false)
	s.gone[NameOf(instance)] = instance
	s.mu.Unlock()
	s.touched(configurationOf(instance))
	s.unresolved.Add(NameOf(instance))
}

// resolveGone finds out whether each Instance in gone was left or deleted, until the queue
// is shut down.
func (s *Store) resolveGone(ctx context.Context) {
	for {
		name, ended := s.unresolved.Get()
		if ended {
			return
		}
		if err := s.resolve(ctx, name); err != nil {
			s.log.Debug("Cannot read an Instance that disappeared", "instance", name, "err", err)
			s.unresolved.AddRateLimited(name)
		} else {
			s.unresolved.Forget(name)
		}
		s.unresolved.Done(name)
	}
}

// resolve reads an Instance that disappeared and sends its event, unless it has appeared
// again.
func (s *Store) resolve(ctx context.Context, name types.NamespacedName) error {
	s.mu.Lock()
	before := s.gone[name]
	s.mu.Unlock()
	if before == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	now, err := s.Read(limited, name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone[name] != before {
		return nil
	}
	delete(s.gone, name)
	switch {
	case now == nil || now.UID != before.UID:
		s.notifyDeleted(before)
	case !s.ours(now): // otherwise, the watch will show it soon
		s.depart(now, false) // which may be later than the watch has shown
		s.handler(Left, now)
	}
	return nil
}

// notifyDeleted calls the handler. The caller holds mu, which keeps the events in
// order.
func (s *Store) notifyDeleted(instance *v0.Instance) {
	s.depart(instance, true)
	s.handler(Deleted, instance)
}

// Read returns an Instance as the API server has it, or nil if there is none.
func (s *Store) Read(ctx context.Context, name types.NamespacedName) (*v0.Instance, error) {
	object, err := s.client.Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Instance %s: %w", name, err)
	}
	return Read(object)
}
