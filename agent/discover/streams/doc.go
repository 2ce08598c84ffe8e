// Package streams keeps one Discover stream for each Configuration and endpoint
// of its discovery handler, and joins what they say into one picture of the
// Configuration's devices on this node.
//
// A [View] (view.go, grace.go; pure) is the picture; a stream (stream.go) feeds
// it; the [Supervisor] owns both and says when there is something new to see.
//
// Always:
//   - Each message is the full list of its endpoint; the devices of a
//     Configuration are the union over the endpoints, and an endpoint that
//     fails takes nothing from the others.
//   - A device goes when a message of a live stream lacks it, or when the grace
//     after a broken stream has passed; see grace.go for each limit.
//   - When the question changes, nothing goes until the new stream has spoken.
//   - An agent that starts knows nothing, which is not the same as "no
//     devices": its picture is settled only when every endpoint has spoken.
//
// Never: a clock, a goroutine or a lock in the pure half.
package streams
