package readiness

import (
	"regexp"
	"strings"
)

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
