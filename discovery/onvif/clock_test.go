package onvif

import (
	"encoding/xml"
	"fmt"
	"slices"
	"testing"
	"time"

	"akri.sh/akri/discovery/onvif/soap"
)

// TestClockReadings has cameras in a zone eight hours ahead of UTC.
func TestClockReadings(t *testing.T) {
	tell := func(element string, ahead time.Duration) string {
		at := epoch.Add(ahead)
		return fmt.Sprintf("<%s><Time><Hour>%02d</Hour><Minute>%d</Minute><Second> %d </Second></Time>"+
			"<Date><Year>%d</Year><Month>%d</Month><Day>%d</Day></Date></%[1]s>",
			element, at.Hour(), at.Minute(), at.Second(), at.Year(), at.Month(), at.Day())
	}
	zone := func(name string) string { return "<TimeZone><TZ>" + name + "</TZ></TimeZone>" }
	const hour = time.Hour
	for name, tc := range map[string]struct {
		answer string
		date   time.Duration // in the HTTP header, if it is not 0
		want   []time.Duration
	}{
		"nothing":                     {"", 0, []time.Duration{0}},
		"only the header":             {"", 2 * hour, []time.Duration{2 * hour, 0}},
		"UTC":                         {tell("UTCDateTime", 0), 0, []time.Duration{0}},
		"UTC, some seconds ahead":     {tell("UTCDateTime", 3*time.Second), 0, []time.Duration{3 * time.Second}},
		"UTC and local time":          {tell("UTCDateTime", 0) + tell("LocalDateTime", 8*hour) + zone("CST-8"), 0, []time.Duration{0, 8 * hour}},
		"local time as UTC":           {tell("UTCDateTime", 8*hour), 0, []time.Duration{8 * hour, 0}},
		"only local time":             {tell("LocalDateTime", 8*hour), 0, []time.Duration{0, 8 * hour}},
		"only local time, with zone":  {tell("LocalDateTime", 7*hour) + zone(" CST-8 "), 0, []time.Duration{-hour, 0, 7 * hour}},
		"a zone with minutes":         {tell("LocalDateTime", 0) + zone("&lt;+0330&gt;-3:30"), 0, []time.Duration{-3*hour - 30*time.Minute, 0}},
		"west":                        {tell("LocalDateTime", 0) + zone("EST5EDT,M3.2.0,M11.1.0"), 0, []time.Duration{5 * hour, 0}},
		"a zone of another kind":      {tell("LocalDateTime", 8*hour) + zone("Asia/Shanghai"), 0, []time.Duration{0, 8 * hour}},
		"no numbers":                  {"<UTCDateTime><Time><Hour>noon</Hour></Time></UTCDateTime>", 0, []time.Duration{0}},
		"a year that is out of range": {tell("UTCDateTime", 0)[:10], 0, []time.Duration{0}},
	} {
		var answer soap.Answer
		_ = xml.Unmarshal([]byte("<a><SystemDateAndTime>"+tc.answer+"</SystemDateAndTime></a>"), &answer.Response)
		if tc.date != 0 {
			answer.Date = epoch.Add(tc.date)
		}
		if got := clockReadings(answer, epoch); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
