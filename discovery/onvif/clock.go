package onvif

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
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
	if zone, known := zoneOffset(clock.TimeZone, strings.TrimSpace(clock.DaylightSavings) == "true"); known && !local.IsZero() {
		add(local.Add(-zone))
	}
	add(answer.Date)
	add(now)
	add(local)
	return all
}

// timeOf returns the time that a camera has said, zero if it has not.
func timeOf(said soap.DateTime) time.Time {
	var numbers [6]int
	for i, written := range []string{said.Year, said.Month, said.Day, said.Hour, said.Minute, said.Second} {
		value, err := strconv.Atoi(strings.TrimSpace(written))
		if err != nil || value < 0 || value > 9999 {
			return time.Time{}
		}
		numbers[i] = value
	}
	return time.Date(numbers[0], time.Month(numbers[1]), numbers[2], numbers[3], numbers[4], numbers[5], 0, time.UTC)
}

// zone matches a time zone as POSIX writes it, such as CST-8 or <+0330>-3:30: the hours to add
// to local time.
var zone = regexp.MustCompile(`^(?:<[^>]*>|[A-Za-z]+)([+-]?\d{1,2})(?::?(\d\d))?`)

// zoneOffset returns how far local time is ahead in a time zone.
func zoneOffset(written string, daylightSavings bool) (offset time.Duration, known bool) {
	found := zone.FindStringSubmatch(strings.TrimSpace(written))
	if found == nil {
		return 0, false
	}
	offset, err := time.ParseDuration(found[1] + "h" + cmp.Or(found[2], "0") + "m")
	if daylightSavings {
		offset -= time.Hour
	}
	return -offset, err == nil
}
