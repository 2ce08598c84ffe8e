package wire

import "strings"

// IsServiceType reports whether labels are those of a type of services, such as
// "_http._tcp".
func IsServiceType(labels []string) bool {
	if len(labels) != 2 {
		return false
	}
	name, marked := strings.CutPrefix(labels[0], "_")
	protocol := lower(labels[1])
	return marked && isServiceName(name) && (protocol == "_tcp" || protocol == "_udp")
}

// IsSubtype reports whether labels are those of a sub-type, such as
// "_printer._sub._http._tcp".
func IsSubtype(labels []string) bool {
	return len(labels) == 4 && labels[0] != "" && lower(labels[1]) == "_sub" && IsServiceType(labels[2:])
}

// isServiceName reports whether a text consists of letters, digits, hyphens and
// underscores. RFC 6335 permits neither underscores nor more than 15 characters, but both
// are in use.
func isServiceName(text string) bool {
	return text != "" && len(text) < maxLabelBytes && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}
