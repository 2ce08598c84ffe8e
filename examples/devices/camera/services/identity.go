package services

import "net/url"

// Identity is what a camera tells about itself.
type Identity struct {
	Name         string
	UUID         string // without "urn:uuid:"
	Location     string
	Manufacturer string
	Model        string
	Serial       string
	Firmware     string
	MAC          string // of the network interface
	Interface    string
	Address      string // IPv4
	PrefixLength int
}

// Scopes returns the scopes of the camera, as ONVIF defines them.
func (i Identity) Scopes() []string {
	const prefix = "onvif://www.onvif.org/"
	return []string{
		prefix + "type/video_encoder",
		prefix + "type/Network_Video_Transmitter",
		prefix + "Profile/Streaming",
		prefix + "name/" + url.PathEscape(i.Name),
		prefix + "hardware/" + url.PathEscape(i.Model),
		prefix + "location/" + url.PathEscape(i.Location),
	}
}
