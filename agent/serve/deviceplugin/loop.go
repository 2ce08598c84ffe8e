package deviceplugin

import (
	"context"
	"errors"
	"time"

	"akri.sh/akri/agent/serve/slots"
)

// loop runs in the only goroutine that touches the machine. After ctx is done, it
// still answers the pending calls.
func (s *Server) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	ended := ctx.Done()
	var last <-chan time.Time
	for ended != nil || len(s.requests) > 0 {
		timer.Stop()
		if at, found := s.machine.Deadline(); found {
			timer.Reset(max(at-s.now(), time.Millisecond))
		}
		s.options.Heartbeat.Rest()
		select {
		case <-ended:
			ended, last = nil, time.After(allocateDeadline)
		case <-last:
			return
		case <-s.queue.ready:
			s.options.Heartbeat.Beat()
			for _, f := range s.queue.take() {
				f()
				s.offerRefused() // before anything else about an Instance that was refused
			}
		case <-timer.C:
			s.options.Heartbeat.Beat()
			s.do(s.machine.Step(slots.Ticked{Now: s.now()}))
		}
		s.offerRefused()
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
		s.log.Debug("Carrying out a command", "command", command)
		switch c := command.(type) {
		case slots.Answer:
			s.answer(c)
		case slots.Claim:
			s.claim(c)
		case slots.Release:
			s.release(c)
		case slots.Probe:
			s.probe(c)
		case slots.Advertise:
			s.advertise(c.Resource, c.List)
		case slots.Withdraw:
			s.withdraw(c.Resource)
			s.forget(c.Resource.Name)
		case slots.Report:
			s.warnOfReport(c)
		}
	}
}

// answer ends an allocation.
func (s *Server) answer(c slots.Answer) {
	a := callAnswer{err: c.Err}
	if c.Err == nil {
		if devices, found := s.devices.of(c.Slots); found {
			a.devices = devices
		} else {
			a.err = slots.ErrGone
		}
	}
	s.metrics.allocation(a.err)
	full := errors.Is(a.err, slots.ErrTaken) || errors.Is(a.err, slots.ErrFull) || errors.Is(a.err, slots.ErrTooFew)
	if full && s.refusals.Allow() {
		s.observeSoon() // a container may have terminated
	}
	if r, found := s.requests[c.Call]; found {
		if a.err != nil {
			s.warnOfRefusal(r.resource, r.ids, a.err)
		}
		r.answers <- a // buffered: does not block
		delete(s.requests, c.Call)
	}
}
