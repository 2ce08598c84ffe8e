package deviceplugin

import (
	"context"
	"errors"
	"time"

	"akri.sh/akri/agent/serve/claims"
	"akri.sh/akri/agent/serve/slots"
)

// loop runs in the only goroutine that touches the machine. After ctx is done, it
// still answers the pending calls.
func (s *Server) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	ended := ctx.Done()
	var last <-chan time.Time
	for ended != nil || len(s.answers) > 0 {
		timer.Stop()
		if at, found := s.machine.Deadline(); found {
			timer.Reset(max(at-s.now(), time.Millisecond))
		}
		select {
		case <-ended:
			ended, last = nil, time.After(allocateDeadline)
		case <-last:
			return
		case <-s.queue.ready:
			for _, f := range s.queue.take() {
				f()
			}
		case <-timer.C:
			s.do(s.machine.Step(slots.Ticked{Now: s.now()}))
		}
		s.offerWaiting()
		s.metrics.count(s.machine.Counts())
	}
}

// now returns the machine's time.
func (s *Server) now() time.Duration { return time.Since(s.started) }

// step passes an event to the machine and carries out its commands.
func (s *Server) step(e slots.Event) {
	s.do(s.machine.Step(slots.Ticked{Now: s.now()}))
	s.do(s.machine.Step(e))
}

// do carries out commands. None of them blocks.
func (s *Server) do(commands []slots.Command) {
	for _, command := range commands {
		s.log.Debug("Carrying out a command", "command", command.String())
		switch c := command.(type) {
		case slots.Answer:
			s.metrics.allocation(c.Err)
			if errors.Is(c.Err, slots.ErrTaken) {
				s.observeSoon()
			}
			s.reply(c.Call, answer{err: c.Err})
		case slots.Suggest:
			s.reply(c.Call, answer{slots: c.Slots})
		case slots.Claim:
			s.patch(c.Instance, patch{c.Slots, s.executor.Claim, s.metrics.claims, func(r claims.Result) slots.Event {
				return slots.ClaimSettled{Instance: c.Instance, Slots: c.Slots, Outcome: r.Outcome, Record: r.Record}
			}})
		case slots.Release:
			s.patch(c.Instance, patch{c.Slots, s.executor.Release, s.metrics.releases, func(r claims.Result) slots.Event {
				return slots.ReleaseSettled{
					Instance: c.Instance, Slots: c.Slots, Outcome: r.Outcome, Record: r.Record, Tried: r.Tried, Gone: r.Gone,
				}
			}})
		case slots.Advertise:
			s.resource(c.Instance).setList(c.List)
		case slots.Withdraw:
			s.withdraw(c.Instance)
			s.forgetName(c.Instance)
		case slots.Report:
			s.log.Error("The record names another owner for a slot in use; the slot stays unhealthy until deviceUsage is corrected",
				"slot", c.Slot.String(), "what", c.What)
		}
	}
}

func (s *Server) reply(call slots.Call, a answer) {
	if ch := s.answers[call]; ch != nil {
		ch <- a // buffered: does not block
		delete(s.answers, call)
	}
}
