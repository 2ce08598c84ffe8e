package follow

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestBack has devices that are removed and announced again at any time, also while a list is
// received: they are there, and gone, at once.
func TestBack(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := simulate(t, "convention: homeAssistant")
		s.connect()
		s.advance(quietTime)
		var log []string
		for range 60 {
			name := string(rune('a' + random.IntN(3)))
			topic, state := "homeassistant/sensor/"+name+"/config", "state/"+name
			switch random.IntN(6) {
			case 0, 1:
				s.publish(topic, `{"stat_t":"x","avty_t":"`+state+`","dev":{"ids":"`+name+`"}}`)
				log = append(log, "+"+name)
			case 2:
				s.publish(topic, "")
				log = append(log, "-"+name)
			case 3, 4:
				s.publish(state, "online")
				log = append(log, "on "+name)
			case 5:
				s.publish(state, "")
				log = append(log, "clear "+name)
			}
			if random.IntN(3) == 0 {
				d := time.Duration(random.Int64N(int64([]time.Duration{time.Second, 2 * time.Minute, 20 * time.Minute}[random.IntN(3)])))
				log = append(log, fmt.Sprint(d.Round(time.Millisecond)))
				s.advance(d)
				d = 3*pace + settleTime
				s.advance(d)
				want := []string{}
				for _, name := range []string{"a", "b", "c"} {
					if s.retained["homeassistant/sensor/"+name+"/config"] != "" && s.retained["state/"+name] == "online" {
						want = append(want, name)
					}
				}
				if got := s.lists[len(s.lists)-1]; !slices.Equal(got, want) {
					t.Fatalf("seed %d: got %q, want %q: %q", seed, got, want, log)
				}
			}
		}
	}
}
