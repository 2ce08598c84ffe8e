package readiness

import (
	"regexp"
	"strings"
)

// counts matches kstatus' messages for an object that is on its way to ready.
var counts = regexp.MustCompile(`^(\w+: \d+/\d+` +
	`|Pending termination: \d+` +
	`|(Deployment|ReplicaSet) not Available` +
	`|\w+ status\.observedGeneration not found` +
	`|\w+ generation is \d+, but latest observed generation is \d+)$`)

// Counts reports whether a reason of [Of] says only how far the object has come, such
// as "Available: 1/3".
func Counts(reason string) bool { return counts.MatchString(reason) }

// unschedulable begins the reason of a Pod that the scheduler finds no node for.
const unschedulable = "the Pod is pending: Unschedulable: "

var number = regexp.MustCompile(`\b[0-9]+\b`)

// SameObstacle reports whether two reasons say of a Pod that it has no node, and differ
// only in numbers. The scheduler counts nodes: when one joins, the messages of all such
// Pods change.
func SameObstacle(before, now string) bool {
	return strings.HasPrefix(before, unschedulable) && strings.HasPrefix(now, unschedulable) &&
		number.ReplaceAllString(before, "0") == number.ReplaceAllString(now, "0")
}
