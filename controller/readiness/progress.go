package readiness

import "regexp"

// counts matches kstatus' messages for an object that is on its way to ready.
var counts = regexp.MustCompile(`^(\w+: \d+/\d+` +
	`|Pending termination: \d+` +
	`|(Deployment|ReplicaSet) not Available` +
	`|\w+ status\.observedGeneration not found` +
	`|\w+ generation is \d+, but latest observed generation is \d+)$`)

// Counts reports whether a reason of [Of] says only how far the object has come, such
// as "Available: 1/3".
func Counts(reason string) bool { return counts.MatchString(reason) }
