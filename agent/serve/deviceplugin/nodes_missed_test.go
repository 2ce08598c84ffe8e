package deviceplugin

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// TestMissedPods admits Pods that end before the watch has shown them. Their slots must
// be free in time (I7) although nothing is a reason to observe the Pods.
func TestMissedPods(t *testing.T) {
	prepareNodes(t)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, reached{}, slog.New(slog.DiscardHandler))
		c.addNode("node-0")
		n := c.nodes[0]
		time.Sleep(maxRewatch)
		for range 100 {
			for _, d := range c.devices {
				if d.reaches(n) {
					c.checkAvailable(n, d.name)
				}
			}
			time.Sleep(c.upTo(maxInterval))
		}
		n.end()
		c.late.Wait()
	})
}
