package onvif

import (
	"net/netip"
	"sync"
	"time"
)

// inflow limits the messages that are read in a time: of all hosts, so that a network
// cannot use up the processor, and of each host, so that one cannot take the share of all
// others. It is safe for concurrent use.
type inflow struct {
	mu    sync.Mutex
	began time.Time // when it began to count
	all   int
	hosts map[netip.Addr]int
}

// admits reports whether to read a message of a size. A large one counts as several.
func (i *inflow) admits(now time.Time, from netip.Addr, size int) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if now.Sub(i.began) >= inflowPeriod || now.Before(i.began) {
		i.began, i.all, i.hosts = now, 0, map[netip.Addr]int{}
	}
	cost := 1 + size/countedBytes
	if i.all+cost > maxMessages || i.hosts[from]+cost > maxMessagesPerHost {
		return false
	}
	i.all += cost
	i.hosts[from] += cost
	return true
}
