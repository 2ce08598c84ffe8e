package deviceplugin

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"akri.sh/akri/agent/serve/claims"
	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// claim sends a claim.
func (s *Server) claim(c slots.Claim) {
	name := s.devices.nameOf(c.Instance)
	send := func(ctx context.Context) claims.Result { return s.executor.Claim(ctx, name, c) }
	s.patch(c.Instance, "claim", send, func(r slots.Result) slots.Event {
		s.metrics.claims.WithLabelValues(outcomes[r.Outcome]).Inc()
		return slots.ClaimSettled{Instance: c.Instance, Slots: numbersOf(c.Owners), Result: r}
	})
}

// release sends a release.
func (s *Server) release(c slots.Release) {
	name, since := s.devices.nameOf(c.Instance), cmp.Or(s.noticed, time.Now())
	send := func(ctx context.Context) claims.Result { return s.executor.Release(ctx, name, c.Owners) }
	s.patch(c.Instance, "release", send, func(r slots.Result) slots.Event {
		s.metrics.releases.WithLabelValues(outcomes[r.Outcome]).Inc()
		if r.Outcome == slots.Written {
			for _, owner := range c.Owners {
				s.metrics.released(owner, since)
			}
		}
		return slots.ReleaseSettled{Instance: c.Instance, Slots: numbersOf(c.Owners), Result: r}
	})
}

// probe sends a probe.
func (s *Server) probe(c slots.Probe) {
	name, owner := s.devices.nameOf(c.Instance), v0.Owner{Node: s.options.NodeName}
	send := func(ctx context.Context) claims.Result { return s.executor.Probe(ctx, name, owner) }
	s.patch(c.Instance, "probe", send, func(r slots.Result) slots.Event {
		return slots.ProbeSettled{Instance: c.Instance, Result: r}
	})
}

// patch sends a patch in the background and passes its result to settled, on the loop.
func (s *Server) patch(
	instance, kind string, send func(context.Context) claims.Result, settled func(slots.Result) slots.Event,
) {
	s.running.Go(func() {
		result := send(context.Background()) // has its own deadline; completes during shutdown
		s.queue.post(func() {
			// A slot that another owner was faster to claim is no reason for a warning.
			if result.Outcome != slots.Written && result.Record == nil && !result.Gone {
				s.warnOfInstance(s.devices.nameOf(instance), kind, reasonUnwritable, "node "+s.options.NodeName+
					" could not write a "+kind+": "+result.Err.Error())
			}
			s.step(settled(result.Result))
		})
	})
}

func numbersOf(owners map[int]v0.Owner) []int { return slices.Sorted(maps.Keys(owners)) }
