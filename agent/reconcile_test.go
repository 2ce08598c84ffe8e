package agent

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A thousand agents that fail at the same time do not retry at the same times.
func TestRetriesOfManyAgents(t *testing.T) {
	const agents, attempts = 1000, 20
	name := types.NamespacedName{Namespace: "plant", Name: "door"}
	at := map[time.Duration]int{} // agents, by the time of the last attempt in seconds
	for range agents {
		limiter, now := newLimiter(), time.Duration(0)
		for attempt := range attempts {
			delay := limiter.When(name)
			if delay <= 0 || delay > maxRetryDelay || attempt == attempts-1 && delay < maxRetryDelay/2 {
				t.Fatalf("the delay of attempt %d is %s", attempt, delay)
			}
			now += delay
		}
		at[now.Truncate(time.Second)]++
	}
	for second, count := range at {
		if count > agents/20 {
			t.Errorf("%d of %d agents make attempt %d within the same second, at %s", count, agents, attempts, second)
		}
	}
}

// A thousand agents that do not serve a Configuration, which they learned of together, do
// not find room for it together.
func TestRoomOfManyAgents(t *testing.T) {
	const agents = 1000
	at := map[time.Duration]int{} // agents, by the time of their next look in seconds
	for range agents {
		delay := untilRoom()
		if delay < unservedDelay/2 || delay > unservedDelay {
			t.Fatalf("the delay is %s", delay)
		}
		at[delay.Truncate(time.Second)]++
	}
	for second, count := range at {
		if count > agents/10 {
			t.Errorf("%d of %d agents look within the same second, at %s", count, agents, second)
		}
	}
}
