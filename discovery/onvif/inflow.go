package onvif

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// inflow limits the messages that are read: of all hosts, so that a network cannot use up
// the processor, and of each host, so that one cannot take the share of all others. It is
// safe for concurrent use.
type inflow struct {
	all *rate.Limiter

	mu     sync.Mutex
	second time.Time // when counts begins
	counts map[netip.Addr]int
}

func newInflow() *inflow {
	return &inflow{all: rate.NewLimiter(maxMessagesPerSecond, maxMessageBurst), counts: map[netip.Addr]int{}}
}

// admits reports whether to read a message of a size. A large one counts as several.
func (i *inflow) admits(now time.Time, from netip.Addr, size int) bool {
	cost := 1 + size/countedBytes
	return i.admitsHost(now, from, cost) && i.all.AllowN(now, cost)
}

func (i *inflow) admitsHost(now time.Time, from netip.Addr, cost int) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if now.Sub(i.second) >= time.Second || now.Before(i.second) {
		i.second = now
		clear(i.counts)
	}
	count, found := i.counts[from]
	if !found && len(i.counts) >= maxCameras {
		return true // the limit of all remains
	}
	if count+cost > maxMessagesPerHost {
		return false
	}
	i.counts[from] = count + cost
	return true
}
