package details

import (
	"cmp"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"akri.sh/akri/discovery/details"
)

// DefaultClientIDPrefix is the default of Broker.ClientIDPrefix.
const DefaultClientIDPrefix = "akri"

// Broker is the broker of a Configuration. The user name and the password are the
// discoveryProperties "username" and "password".
type Broker struct {
	// URL is tcp://HOST:PORT or tls://HOST:PORT.
	URL string `json:"url"`
	// ClientIDPrefix is the beginning of the handler's client ids.
	ClientIDPrefix string `json:"clientIdPrefix"`
	// CAProperty, CertProperty and KeyProperty are names of discoveryProperties with PEM.
	CAProperty   string `json:"caProperty"`
	CertProperty string `json:"certProperty"`
	KeyProperty  string `json:"keyProperty"`
	// ServerName is the name in the broker's certificate, if it is not the host.
	ServerName string `json:"serverName"`
}

// schemes are the schemes of URLs of brokers, and their ports.
var schemes = map[string]string{"tcp": "1883", "mqtt": "1883", "tls": tlsPort, "ssl": tlsPort, "mqtts": tlsPort}

const tlsPort = "8883"

// Address returns HOST:PORT.
func (b Broker) Address() string {
	_, address, _ := strings.Cut(b.URL, "://")
	return address
}

// TLS reports whether the connection is encrypted.
func (b Broker) TLS() bool {
	scheme, _, _ := strings.Cut(b.URL, "://")
	return schemes[scheme] == tlsPort
}

// clientIDPrefix matches what may begin a client id: the characters that every broker
// accepts. With the random part, an id has at most the 23 characters that every broker
// accepts if the prefix has at most six.
var clientIDPrefix = regexp.MustCompile(`^[0-9A-Za-z_-]{1,32}$`)

func (b *Broker) check() error {
	if b.URL == "" {
		return details.Faultf("broker.url", "missing").Hintf("write the broker's address, such as tcp://broker.plant:1883")
	}
	parsed, err := url.Parse(b.URL)
	if err != nil || parsed.Hostname() == "" {
		// The URL may contain a password, so it is not quoted.
		return details.Faultf("broker.url", "not a valid URL").Hintf("write SCHEME://HOST:PORT, such as tcp://broker.plant:1883")
	}
	port, known := schemes[parsed.Scheme]
	switch {
	case parsed.User != nil:
		return details.Faultf("broker.url", "contains a user name").
			Hintf("use discoveryProperties username and password, which may refer to a Secret")
	case !known:
		return details.Faultf("broker.url", "unknown scheme %q", parsed.Scheme).Hintf("write tcp (or mqtt), or tls (or ssl, mqtts)")
	case strings.Trim(parsed.Path, "/") != "" || parsed.RawQuery != "" || parsed.Fragment != "":
		return details.Faultf("broker.url", "has a path or a query").Hintf("write only SCHEME://HOST:PORT")
	}
	b.URL = parsed.Scheme + "://" + net.JoinHostPort(parsed.Hostname(), cmp.Or(parsed.Port(), port))
	return b.checkRest()
}

func (b *Broker) checkRest() error {
	b.ClientIDPrefix = cmp.Or(b.ClientIDPrefix, DefaultClientIDPrefix)
	if !clientIDPrefix.MatchString(b.ClientIDPrefix) {
		return details.Faultf("broker.clientIdPrefix", "not a valid prefix").Hintf("use up to 32 letters, digits, - and _")
	}
	fields := [][2]string{
		{"caProperty", b.CAProperty}, {"certProperty", b.CertProperty}, {"keyProperty", b.KeyProperty}, {"serverName", b.ServerName},
	}
	if i := slices.IndexFunc(fields, func(field [2]string) bool { return field[1] != "" }); i >= 0 && !b.TLS() {
		return details.Faultf("broker."+fields[i][0], "the connection is not encrypted").Hintf("write tls:// in broker.url, or remove this")
	}
	if (b.CertProperty == "") != (b.KeyProperty == "") {
		return details.Faultf("broker", "only one of certProperty and keyProperty is set").Hintf("set both or none")
	}
	return nil
}
