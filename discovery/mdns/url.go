package mdns

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"akri.sh/akri/discovery/mdns/browse"
)

// schemes are the schemes of URLs by type of service, for types whose services can be
// named by a URL.
var schemes = map[string]string{
	"_coap._udp":        "coap",
	"_coaps._udp":       "coaps",
	"_ftp._tcp":         "ftp",
	"_http._tcp":        "http",
	"_https._tcp":       "https",
	"_ipp._tcp":         "ipp",
	"_ipps._tcp":        "ipps",
	"_mqtt._tcp":        "mqtt",
	"_secure-mqtt._tcp": "mqtts",
	"_opcua-tcp._tcp":   "opc.tcp",
	"_rtsp._tcp":        "rtsp",
	"_sftp-ssh._tcp":    "sftp",
	"_ssh._tcp":         "ssh",
	"_rfb._tcp":         "vnc",
	"_webthing._tcp":    "http",
}

// pathKeys are the keys of TXT records with the URL's path, by scheme; "path" for others.
var pathKeys = map[string]string{"ipp": "rp", "ipps": "rp"}

// serviceURL returns the URL of a service, or "" if its type has none. The path is what the
// device announces; scheme, host and port are not.
func serviceURL(s browse.Service, address netip.Addr) string {
	scheme := schemes[strings.ToLower(s.Type)]
	if scheme == "" {
		return ""
	}
	result := url.URL{Scheme: scheme, Host: netip.AddrPortFrom(address, s.Port).String()}
	if address.Zone() != "" {
		result.Host = "[" + address.String() + "]:" + strconv.Itoa(int(s.Port)) // URL escapes the zone
	}
	key := pathKeys[scheme]
	if key == "" {
		key = "path"
	}
	if path, found := s.Text(key); found {
		if parsed, err := url.Parse("/" + strings.TrimLeft(path, "/")); err == nil {
			result.Path, result.RawPath = parsed.Path, parsed.RawPath
			result.RawQuery = strings.ReplaceAll(parsed.RawQuery, " ", "%20")
		}
	}
	return printable(result.String())
}
