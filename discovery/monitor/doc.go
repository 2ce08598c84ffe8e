// Package monitor counts and logs what the built-in handlers find.
//
// Wrap a handler with [Metrics.Wrap]: the metrics then have its devices, and the log has
// a line for each device that appears, changes or disappears, or one line if a list
// changes many. The handler itself reports its scans, and its failures,
// which a [Reporter] logs once each.
//
// Always: labels have few values; none comes from a device or from a Configuration.
// Never: a property of a device in the log.
package monitor
