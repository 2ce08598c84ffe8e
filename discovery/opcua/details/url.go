package details

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

const (
	// Scheme begins the URLs of OPC UA over TCP.
	Scheme = "opc.tcp://"
	// maxURLBytes bounds URLs that authors write.
	maxURLBytes = 1024
	defaultPort = 4840
)

// URL is a parsed URL of a server.
type URL struct {
	// Host is a name or an IP address, without brackets.
	Host string
	Port uint16
	// Path is empty or begins with a slash.
	Path string
}

// ParseURL parses a URL with the scheme opc.tcp.
func ParseURL(text string) (URL, error) {
	switch rest, ok := strings.CutPrefix(text, Scheme); {
	case !ok:
		return URL{}, errors.New("the scheme is not opc.tcp")
	case len(text) > maxURLBytes:
		return URL{}, fmt.Errorf("%d bytes, more than %d", len(text), maxURLBytes)
	case strings.ContainsFunc(rest, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}", r) }):
		return URL{}, errors.New("it contains a character that must be escaped")
	}
	parsed, err := url.Parse(text)
	if err != nil {
		return URL{}, errors.New("it is not a URL")
	}
	u := URL{Host: parsed.Hostname(), Port: defaultPort, Path: parsed.EscapedPath()}
	if parsed.Port() != "" {
		port, err := strconv.ParseUint(parsed.Port(), 10, 16)
		if err != nil || port == 0 {
			return URL{}, fmt.Errorf("%q is not a port", parsed.Port())
		}
		u.Port = uint16(port)
	}
	switch {
	case parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" || parsed.ForceQuery:
		return URL{}, errors.New("a user, a query and a fragment are not possible")
	case !validHost(u.Host) || strings.Contains(u.Host, ":") && parsed.Host[0] != '[':
		return URL{}, errors.New("the host is not a name or an IP address")
	}
	return u, nil
}

// reported matches URLs as servers report them: other than authors, they may write the
// scheme in another case, blanks, a query, a name in another alphabet, and the port 0.
var reported = regexp.MustCompile(`(?is)^\s*opc\.tcp://\s*(\[[^\]]*\]|[^/?#:\s]+)\s*(:[0-9]*)?\s*(/[^?#]*)?([?#].*)?$`)

// ParseReported parses a URL as a server reports it.
func ParseReported(text string) (URL, error) {
	parts := reported.FindStringSubmatch(text)
	if u, err := ParseURL(text); err == nil || parts == nil {
		return u, err
	}
	host, _ := idna.ToASCII(strings.ToLower(parts[1])) // ParseURL refuses what it cannot convert
	if strings.Trim(parts[2], ":0") == "" {
		parts[2] = "" // the default
	}
	path := strings.TrimSpace(parts[3])
	unescaped, _ := url.PathUnescape(path) // empty if it was not escaped well
	return ParseURL(Scheme + host + parts[2] + (&url.URL{Path: cmp.Or(unescaped, path)}).EscapedPath())
}

// String returns the URL, always with a port.
func (u URL) String() string { return Scheme + u.Address() + u.Path }

// Address returns host and port.
func (u URL) Address() string { return net.JoinHostPort(u.Host, strconv.Itoa(int(u.Port))) }

// hostName matches the names of hosts, including those with underscores, which Windows
// permits.
var hostName = regexp.MustCompile("^[A-Za-z0-9._-]+$")

// maxHostBytes is DNS's bound. In the pattern, it would compile to as many states, in each
// program that knows this handler.
const maxHostBytes = 253

// validHost reports whether a host is a name or an IP address.
func validHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Zone() == "" || len(host) <= maxHostBytes && hostName.MatchString(host) // zones are specific to a machine
}
