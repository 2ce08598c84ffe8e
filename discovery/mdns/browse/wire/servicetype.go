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

// isServiceName reports whether a text consists of letters, digits, hyphens and
// underscores. RFC 6335 permits neither underscores nor more than 15 characters, but both
// are in use.
func isServiceName(text string) bool {
	return text != "" && len(text) < 63 && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}
