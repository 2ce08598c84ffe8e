package browse

import (
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loss loses one packet in three.
type loss struct {
	random *rand.Rand
	count  int
}

func newLoss(seed uint64) *loss { return &loss{random: rand.New(rand.NewPCG(seed, seed))} }

func (l *loss) third() bool {
	if l.random.IntN(3) > 0 {
		return false
	}
	l.count++
	return true
}
