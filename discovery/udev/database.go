package udev

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// databaseRecord is the entry of a device in udev's database, /run/udev/data.
type databaseRecord struct {
	properties  map[string]string
	links       []string
	priority    int // with which the device claims the links
	tags        []string
	currentTags []string
	initialized string // microseconds since boot
}

// parseRecord parses an entry. Lines that it does not know are ignored, as in udev: the
// format gets new ones.
func parseRecord(text string) databaseRecord {
	r := databaseRecord{properties: map[string]string{}}
	for line := range strings.Lines(text) {
		kind, value, ok := strings.Cut(strings.TrimRight(line, "\n"), ":")
		if !ok || value == "" {
			continue
		}
		switch kind {
		case "E":
			if name, text, ok := strings.Cut(value, "="); ok && name != "" {
				r.properties[name] = text
			}
		case "S":
			if isBelow(value) && utf8.ValidString(value) {
				r.links = append(r.links, "/dev/"+value)
			}
		case "L":
			r.priority, _ = strconv.Atoi(value) // as in udev, 0 if it is not a number
		case "G":
			r.tags = append(r.tags, value)
		case "Q":
			r.currentTags = append(r.currentTags, value)
		case "I":
			r.initialized = value
		}
	}
	slices.Sort(r.links)
	return r
}

// isBelow reports whether a relative path stays below its directory.
func isBelow(link string) bool {
	return !strings.HasPrefix(link, "/") && !slices.Contains(strings.Split(link, "/"), "..")
}
