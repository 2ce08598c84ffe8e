package observer

import "time"

// ResyncEvery sets the mean interval of resyncs. It must be called before Run.
func (o *Observer) ResyncEvery(d time.Duration) { o.resync = d }

// ReadsAPIServer reports whether the Pods are read from the API server.
func (o *Observer) ReadsAPIServer() bool {
	byAPI, _ := o.source.current()
	return byAPI
}
