package onvif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"akri.sh/akri/discovery/onvif/soap"
)

// streams asks the media service for the URIs of the first profile; if it has none, the other
// media services, one of which may have the second version.
func (c *conversation) streams(ctx context.Context) {
	media := c.call(ctx, c.url, deviceService, "GetCapabilities", "<w:Category>Media</w:Category>", c.credentials).Media
	if c.stream(ctx, mediaService, media) {
		return
	}
	arguments := "<w:IncludeCapability>false</w:IncludeCapability>"
	for _, service := range c.call(ctx, c.url, deviceService, "GetServices", arguments, c.credentials).Services {
		namespace := strings.TrimSpace(service.Namespace)
		isOther := namespace == media2Service || namespace == mediaService && strings.TrimSpace(service.XAddr) != strings.TrimSpace(media)
		if isOther && c.stream(ctx, namespace, service.XAddr) {
			return
		}
	}
	if !c.incomplete && !c.refused {
		c.Once(failedStream, c.url, errors.New("no media service of the camera has a stream for its first profile"))
	}
}

// stream asks a media service for the URIs. Credentials go only to the host of the device
// service. It reports whether there is a stream.
func (c *conversation) stream(ctx context.Context, namespace, xaddr string) bool {
	if xaddr = strings.TrimSpace(xaddr); xaddr == "" {
		return false
	}
	media, err := c.reach(xaddr, true, "http", "https")
	if err != nil {
		c.Once(failedForeign, c.url, fmt.Errorf("the media service is left out: %w", err))
		return true // which is said
	}
	profiles := c.call(ctx, media.String(), namespace, "GetProfiles", "", c.credentials).Profiles
	if len(profiles) == 0 || profiles[0].Token == "" {
		return false
	}
	token := "<w:ProfileToken>" + soap.Escape(profiles[0].Token) + "</w:ProfileToken>"
	setup := "<w:StreamSetup><tt:Stream>RTP-Unicast</tt:Stream><tt:Transport><tt:Protocol>RTSP</tt:Protocol></tt:Transport></w:StreamSetup>"
	if namespace == media2Service {
		setup = "<w:Protocol>RTSP</w:Protocol>"
	}
	stream := c.call(ctx, media.String(), namespace, "GetStreamUri", setup+token, c.credentials)
	uri := strings.TrimSpace(cmp.Or(stream.URI, stream.URI2))
	c.setURI(PropertyStreamURI, uri, "rtsp", "rtsps")
	snapshot := c.call(ctx, media.String(), namespace, "GetSnapshotUri", token, c.credentials)
	c.setURI(PropertySnapshotURI, strings.TrimSpace(cmp.Or(snapshot.URI, snapshot.URI2)), "http", "https")
	return uri != ""
}

// reach returns a URL that a camera has written, without user information. One on another host
// must be allowed. It gets the host of the device service if it is the camera itself, because its
// media service or one of its interfaces is there: behind address translation, a camera does not
// know how it is reached.
func (c *conversation) reach(written string, isService bool, schemes ...string) (*url.URL, error) {
	device, err := url.Parse(c.url)
	if err != nil {
		return nil, err
	}
	target, err := device.Parse(written)
	if err != nil || !slices.Contains(schemes, target.Scheme) || target.Hostname() == "" {
		return nil, fmt.Errorf("not a URL that begins with %s", strings.Join(schemes, " or "))
	}
	target.User = nil
	switch host := (key{url: target.String()}).host(); {
	case isService && device.Scheme == "https" && target.Scheme == "http":
		return nil, errors.New("it is less secure than the device service")
	case host == c.own[0]:
	case !c.settings.AllowForeignXAddrs:
		return nil, fmt.Errorf("it is on another host, %s, which allowForeignXAddrs permits", clean(host))
	case isService || slices.Contains(c.own, host):
		c.own = append(c.own, host)
		if target.Scheme == device.Scheme && target.Port() == "" {
			target.Host = device.Host
		} else {
			target.Host = strings.TrimSuffix(net.JoinHostPort(device.Hostname(), target.Port()), ":")
		}
	}
	return target, nil
}

// setURI sets a property to a URI without its user information. It leaves out a URI that
// has credentials elsewhere, or is on another host: brokers send their credentials there.
func (c *conversation) setURI(property, value string, schemes ...string) {
	if value == "" {
		return
	}
	uri, err := c.reach(value, false, schemes...)
	if err == nil {
		public := uri.String()
		if !c.reveals(public) && clean(public) == public {
			c.facts[property] = public
			return
		}
		err = errors.New("it seems to have a password, or is too long")
	}
	c.Once(failedURI, c.url, fmt.Errorf("%s is left out: %w", property, err))
}

// reveals reports whether a URI seems to contain a password, as those of some cameras do.
func (c *conversation) reveals(uri string) bool {
	unescaped, err := url.PathUnescape(uri)
	if err != nil {
		unescaped = uri
	}
	lower := strings.ToLower(unescaped)
	for _, word := range []string{"password", "passwd", "pwd=", "pass=", "psw="} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	// A short password would be found by chance.
	return c.credentials != nil && len(c.credentials.Password) >= 4 &&
		(strings.Contains(unescaped, c.credentials.Password) || strings.Contains(uri, c.credentials.Password))
}
