package slots

import (
	"hash/fnv"
	"strconv"
	"time"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/backoff"
)

const (
	// minProbe and maxProbe bound the delay before a probe. It doubles with each.
	minProbe = time.Second
	maxProbe = 60 * time.Second
	// minRetry and maxRetry bound the delay before a failed claim that no call waits for
	// is repeated. It doubles with each.
	minRetry = 10 * time.Second
	maxRetry = 60 * time.Second
)

// probe is the state of an Instance whose slots could not be claimed although they are
// free: the API server does not respond, or refuses the patch. An error to the kubelet
// costs a Deployment ten failed Pods a second, an unhealthy ID none. So the free slots
// are unhealthy until a [Probe] succeeds.
type probe struct {
	failing bool
	attempt int
	at      time.Duration // of the next probe
	ended   time.Duration // when a probe last succeeded; claims may fail nevertheless
}

// suspend makes the free slots of an Instance unhealthy. No other node can reach a
// local device: its slots need no claim.
//
// A probe is a dry run, which may succeed although the API server cannot store the object,
// for example because etcd is full. If a claim fails soon after a probe has succeeded, the
// delays therefore continue to grow.
func (m *Machine) suspend(inst *instance) {
	p := &inst.probe
	if !inst.shared || p.failing {
		return
	}
	if m.now-p.ended > maxProbe {
		p.attempt = 0
	}
	p.failing, p.at = true, m.now+m.probeDelay(inst.name, p.attempt)
	m.changed(inst)
}

// probeDue returns the probe that is due, if any. A probe without a result is repeated.
func (m *Machine) probeDue(inst *instance) []Command {
	p := &inst.probe
	if !p.failing || !inst.published || p.at > m.now {
		return nil
	}
	p.attempt++
	p.at = m.now + m.probeDelay(inst.name, p.attempt)
	return []Command{Probe{inst.name}}
}

// probeDelay returns the delay before the next probe.
func (m *Machine) probeDelay(inst string, attempt int) time.Duration {
	return m.jitter(backoff.Delay(minProbe, maxProbe, attempt), inst, attempt)
}

// postpone sets when a claim of a slot whose patch has failed is repeated.
func (m *Machine) postpone(inst *instance, number int) {
	s := inst.slots[number]
	s.retryAt = m.now + m.jitter(backoff.Delay(minRetry, maxRetry, s.retries), v0.SlotName(inst.name, number), s.retries)
	s.retries++
}

// resetRetries ends the delays of failed claims: a patch of the Instance was written, or it
// was created again, so that those of its former life do not count.
func (m *Machine) resetRetries(inst *instance) {
	for _, s := range inst.slots {
		s.retryAt, s.retries = min(s.retryAt, m.now), 0
	}
}

// jitter shortens a delay by up to a fifth, which differs by node, name and attempt, so
// that the requests of many nodes do not coincide.
func (m *Machine) jitter(delay time.Duration, name string, attempt int) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(m.node + "/" + name + "/" + strconv.Itoa(attempt))) // never fails
	const steps = 1000
	return delay - time.Duration(hash.Sum32()%steps)*(delay/5)/steps
}

func (e ProbeSettled) apply(m *Machine) []Command {
	inst := m.instances[e.Instance]
	if inst == nil {
		return nil
	}
	if e.Outcome == Written {
		inst.probe.failing, inst.probe.ended = false, m.now
		m.resetRetries(inst)
	}
	commands := m.record(inst, e.Record)
	m.changed(inst)
	return append(commands, m.resume(inst)...)
}
