package slots

import (
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"akri.sh/akri/internal/backoff"
)

// minRetry and maxRetry bound the delay before a claim that failed is repeated, or before a
// probe. It doubles with each.
const (
	minRetry = time.Second
	maxRetry = 60 * time.Second
)

// retry is the state of an Instance whose record could not be written: the API server does
// not respond, or refuses the patch. An error to the kubelet costs a Deployment ten failed
// Pods a second, an unhealthy ID none. So the free slots of a shared device are unhealthy
// until the claim of a slot that a container has already or, if there is none, a [Probe]
// succeeds. No other node can reach a local device: its slots need no claim.
type retry struct {
	failing bool
	attempt int
	at      time.Duration // of the next attempt
	ended   time.Duration // when an attempt last succeeded; claims may fail nevertheless
}

// suspended reports whether the free slots cannot be claimed at present.
func (i *instance) suspended() bool { return i.shared && i.retry.failing }

// suspend records that a claim of an Instance's slots has failed.
//
// A probe is a dry run, which may succeed although the API server cannot store the object,
// for example because etcd is full. If a claim fails soon after a probe has succeeded, the
// delays therefore continue to grow.
func (m *Machine) suspend(inst *instance) {
	r := &inst.retry
	if r.failing && r.at > m.now {
		return
	}
	if !r.failing && m.now-r.ended > maxRetry {
		r.attempt = 0
	}
	r.failing, r.at = true, m.now+m.retryDelay(inst)
	m.changed(inst)
}

// recovered records that a patch or a probe of an Instance has succeeded.
func (m *Machine) recovered(inst *instance) {
	if inst.retry.failing {
		inst.retry.failing, inst.retry.ended = false, m.now
	}
}

// retryDue returns the attempt that is due, if any. One without a result is repeated.
func (m *Machine) retryDue(inst *instance) []Command {
	r := &inst.retry
	if !r.failing || r.at > m.now {
		return nil
	}
	r.attempt++
	r.at = m.now + m.retryDelay(inst)
	if claims := inst.unwritten(); len(claims) > 0 {
		return m.rewrite(inst, claims)
	}
	if inst.shared && inst.published {
		return []Command{Probe{inst.name}}
	}
	return nil
}

// unwritten returns the slots that a container has, and whose owner is to be written.
func (i *instance) unwritten() []int {
	return slices.DeleteFunc(i.numbers(), func(number int) bool {
		s := i.slots[number]
		return !i.recorded || s.state() != unrecorded || s.busy()
	})
}

// retryDelay returns the delay before the next attempt. It is shorter than the back-off by up
// to a fifth, which differs by node, Instance and attempt, so that the requests of many nodes
// do not coincide.
func (m *Machine) retryDelay(inst *instance) time.Duration {
	delay := backoff.Delay(minRetry, maxRetry, inst.retry.attempt)
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(m.node + "/" + inst.name + "/" + strconv.Itoa(inst.retry.attempt))) // never fails
	const steps = 1000
	return delay - time.Duration(hash.Sum32()%steps)*(delay/5)/steps
}

func (e ProbeSettled) apply(m *Machine) []Command {
	inst := m.instances[e.Instance]
	if inst == nil {
		return nil
	}
	if e.Outcome == Written {
		m.recovered(inst)
	}
	commands := m.record(inst, e.Record)
	return append(commands, m.resume(inst)...)
}
