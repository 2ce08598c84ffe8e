package observer

import "time"

// ResyncEvery sets the mean interval of resyncs. It must be called before Run.
func (o *Observer) ResyncEvery(d time.Duration) { o.resync = d }
