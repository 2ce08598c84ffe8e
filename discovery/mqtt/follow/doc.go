// Package follow keeps the list of a Configuration's devices up to date from the messages
// of a broker. A [Follower] is told what has happened on a connection and when; it says
// what to subscribe to and which devices there are.
//
// Read follower.go, then listing.go (how the first list becomes complete, and how lost
// messages are made up for) and roster.go (when a device is gone).
//
// Always: the list stays while the connection is broken, and a device is missed in several
// lists before it is gone. Never: a clock, a goroutine, a connection.
package follow
