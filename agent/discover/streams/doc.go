// Package streams keeps one Discover stream per Configuration and endpoint of its
// discovery handler, and combines their messages into one [Snapshot] of the
// Configuration's devices on this node.
//
// A view (view.go, grace.go; pure) holds the messages of one Configuration. Streams
// (stream.go) feed it. The [Supervisor] owns both and reports changes.
//
// Always:
//   - Each message is the full list of its endpoint. The devices of a Configuration
//     are the union over the endpoints, so an endpoint that fails does not affect
//     the devices of others. If they describe a device differently, the first one's
//     description counts.
//   - A device is removed when a message of an open stream lacks it, or when the
//     grace period after a broken stream has passed; grace.go lists the limits. What the
//     first message of an endpoint lacks may still exist, so the snapshot has its time.
//   - When the request changes, devices are kept until the new stream has sent a
//     message.
//   - A snapshot is settled only when every endpoint has sent a message: an agent
//     that has just started does not know that there are no devices.
//
// Never: a clock, a goroutine or a lock in the pure half.
package streams
