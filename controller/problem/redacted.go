package problem

// Redacted is a response of the API server whose message must not be repeated. It can
// still be classified: it wraps the response.
type Redacted struct {
	// Text is what may be said instead.
	Text string
	// Err is the response.
	Err error
}

func (r *Redacted) Error() string { return r.Text }

func (r *Redacted) Unwrap() error { return r.Err }
