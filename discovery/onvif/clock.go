package onvif

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"akri.sh/akri/discovery/onvif/soap"
)

// clockReadings returns how far the clock may be ahead that a camera judges credentials by, the
// likeliest first. Some cameras tell local time as UTC, tell only local time, or judge by local
// time. At last, the clock may be right.
func clockReadings(answer soap.Answer, now time.Time) []time.Duration {
	var all []time.Duration
	add := func(at time.Time) {
		offset := at.Sub(now)
		near := func(other time.Duration) bool { return (offset - other).Abs() < minClockDifference }
		if !at.IsZero() && !slices.ContainsFunc(all, near) {
			all = append(all, offset)
		}
	}
	clock := answer.Response.Clock
	local := timeOf(clock.Local)
	add(timeOf(clock.UTC))
	if zone := posixZone.FindStringSubmatch(clock.TimeZone); zone != nil && !local.IsZero() {
		west, _ := time.ParseDuration(zone[1] + "h" + cmp.Or(zone[2], "0") + "m")
		add(local.Add(west))
	}
	add(answer.Date)
	add(now)
	add(local)
	return all
}

// posixZone matches a time zone such as CST-8 or <+0330>-3:30: the hours to add to local time.
var posixZone = regexp.MustCompile(`^\s*(?:<[^>]*>|[A-Za-z]+)([+-]?\d{1,2})(?::?(\d\d))?`)

// timeOf returns the time that a camera has said, zero if it has not.
func timeOf(said soap.DateTime) time.Time {
	text := strings.Join([]string{said.Year, said.Month, said.Day, said.Hour, said.Minute, said.Second}, " ")
	at, _ := time.Parse("2006 1 2 15 4 5", strings.Join(strings.Fields(text), " "))
	return at
}
