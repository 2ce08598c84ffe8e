// Package contention notices that another client keeps undoing what the
// controller repairs, and limits the rate of the repairs.
//
// A [Detector] learns of repairs and of the time from its caller. Never: an
// object, a clock.
package contention
