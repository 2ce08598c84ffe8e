package onvif

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	deviceNamespace = "http://www.onvif.org/ver10/device/wsdl"
	mediaNamespace  = "http://www.onvif.org/ver10/media/wsdl"
	security        = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-"
)

// answer is any SOAP answer, as far as the client reads it.
type answer struct {
	Body struct {
		Fault struct {
			Code struct {
				Value   string
				Subcode struct {
					Value   string
					Subcode struct{ Value string }
				}
			}
			Reason struct{ Text string }
		}
		Time        struct{ SystemDateAndTime systemTime } `xml:"GetSystemDateAndTimeResponse"`
		Information Information                            `xml:"GetDeviceInformationResponse"`
		Scopes      struct {
			Scopes []struct{ ScopeItem string }
		} `xml:"GetScopesResponse"`
		Capabilities struct {
			Media string `xml:"Capabilities>Media>XAddr"`
		} `xml:"GetCapabilitiesResponse"`
		Profiles struct {
			Profiles []struct {
				Token string `xml:"token,attr"`
			}
		} `xml:"GetProfilesResponse"`
		Snapshot struct {
			URI string `xml:"MediaUri>Uri"`
		} `xml:"GetSnapshotUriResponse"`
	}
}

// systemTime is the time of a camera.
type systemTime struct {
	UTC struct {
		Time struct{ Hour, Minute, Second int }
		Date struct{ Year, Month, Day int }
	} `xml:"UTCDateTime"`
}

// Information is what a camera tells about itself.
type Information struct {
	Name         string `xml:"-"` // of the scope onvif://www.onvif.org/name/NAME
	Manufacturer string
	Model        string
}

// Information returns what the camera tells about itself.
func (c *Client) Information(ctx context.Context) (Information, error) {
	if _, err := c.location(ctx); err != nil { // sets the clock's offset
		return Information{}, err
	}
	got, err := c.call(ctx, c.device, deviceNamespace, "GetDeviceInformation", "")
	if err != nil {
		return Information{}, err
	}
	found := got.Body.Information
	found.Manufacturer, found.Model = clip(found.Manufacturer), clip(found.Model)
	if got, err = c.call(ctx, c.device, deviceNamespace, "GetScopes", ""); err != nil {
		return Information{}, err
	}
	for _, scope := range got.Body.Scopes.Scopes {
		if name, ok := strings.CutPrefix(strings.TrimSpace(scope.ScopeItem), "onvif://www.onvif.org/name/"); ok {
			if plain, err := url.PathUnescape(name); err == nil {
				name = plain
			}
			found.Name = clip(name)
		}
	}
	return found, nil
}

// location returns the URL of the picture. It asks the camera the first time.
func (c *Client) location(ctx context.Context) (*url.URL, error) {
	c.mu.Lock()
	known := c.picture
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	if err := c.readClock(ctx); err != nil {
		return nil, err
	}
	got, err := c.call(ctx, c.device, deviceNamespace, "GetCapabilities", "<Category>Media</Category>")
	if err != nil {
		return nil, err
	}
	media, err := c.own(got.Body.Capabilities.Media)
	if err != nil {
		return nil, fmt.Errorf("GetCapabilities: %w", err)
	}
	if got, err = c.call(ctx, media, mediaNamespace, "GetProfiles", ""); err != nil {
		return nil, err
	}
	if len(got.Body.Profiles.Profiles) == 0 {
		return nil, errors.New("GetProfiles: the camera has no media profile: create one in its settings")
	}
	var token strings.Builder
	_ = xml.EscapeText(&token, []byte(got.Body.Profiles.Profiles[0].Token)) // a strings.Builder never fails
	if got, err = c.call(ctx, media, mediaNamespace, "GetSnapshotUri", "<ProfileToken>"+token.String()+"</ProfileToken>"); err != nil {
		return nil, err
	}
	picture, err := c.own(got.Body.Snapshot.URI)
	if err != nil {
		return nil, fmt.Errorf("GetSnapshotUri: %w", err)
	}
	c.mu.Lock()
	c.picture = picture
	c.mu.Unlock()
	return picture, nil
}

// readClock asks for the camera's time, because it refuses tokens of another time. The
// operation needs no credentials; a camera that does not answer it keeps our time.
func (c *Client) readClock(ctx context.Context) error {
	got, err := c.exchange(ctx, c.device, envelope("", deviceNamespace, "GetSystemDateAndTime", ""))
	if err != nil {
		return fmt.Errorf("GetSystemDateAndTime: %w", err)
	}
	t := got.Body.Time.SystemDateAndTime.UTC
	offset := time.Duration(0)
	if t.Date.Year > 0 {
		theirs := time.Date(t.Date.Year, time.Month(t.Date.Month), t.Date.Day, t.Time.Hour, t.Time.Minute, t.Time.Second, 0, time.UTC)
		offset = theirs.Sub(c.now())
	}
	c.mu.Lock()
	c.offset = offset
	c.mu.Unlock()
	return nil
}

// call performs an operation of a service with the credentials.
func (c *Client) call(ctx context.Context, service *url.URL, namespace, operation, arguments string) (answer, error) {
	got, err := c.exchange(ctx, service, envelope(c.token(), namespace, operation, arguments))
	if err != nil {
		return got, fmt.Errorf("%s: %w", operation, err)
	}
	if fault := got.Body.Fault; fault.Code.Value != "" {
		codes := fault.Code.Subcode.Value + " " + fault.Code.Subcode.Subcode.Value
		if strings.Contains(codes, "NotAuthorized") || strings.Contains(codes, "FailedAuthentication") {
			return got, fmt.Errorf("%s: %w", operation, ErrRefused)
		}
		return got, fmt.Errorf("%s: the camera answers: %s", operation, clip(fault.Reason.Text))
	}
	return got, nil
}

// exchange sends an envelope and parses the answer, which may be a fault.
func (c *Client) exchange(ctx context.Context, service *url.URL, content []byte) (answer, error) {
	var got answer
	response, body, err := c.do(ctx, http.MethodPost, service, content, maxAnswer)
	if err != nil {
		return got, err
	}
	if err := xml.Unmarshal(body, &got); err != nil {
		if response.StatusCode != http.StatusOK {
			return got, fmt.Errorf("the camera answers with status %d", response.StatusCode)
		}
		return got, fmt.Errorf("the camera's answer is not SOAP: %w", err)
	}
	if response.StatusCode != http.StatusOK && got.Body.Fault.Code.Value == "" {
		return got, fmt.Errorf("the camera answers with status %d", response.StatusCode)
	}
	return got, nil
}

// token returns the WS-UsernameToken for one request, at the camera's time.
func (c *Client) token() string {
	if c.username == "" {
		return ""
	}
	nonce := make([]byte, 20)
	_, _ = rand.Read(nonce) // never fails
	c.mu.Lock()
	created := c.now().Add(c.offset).UTC().Format("2006-01-02T15:04:05.000Z")
	c.mu.Unlock()
	sum := sha1.Sum([]byte(string(nonce) + created + c.password))
	var username strings.Builder
	_ = xml.EscapeText(&username, []byte(c.username)) // a strings.Builder never fails
	return fmt.Sprintf(`<Security xmlns="%swssecurity-secext-1.0.xsd" s:mustUnderstand="1"><UsernameToken><Username>%s</Username>`+
		`<Password Type="%susername-token-profile-1.0#PasswordDigest">%s</Password><Nonce>%s</Nonce>`+
		`<Created xmlns="%swssecurity-utility-1.0.xsd">%s</Created></UsernameToken></Security>`,
		security, username.String(), security, base64.StdEncoding.EncodeToString(sum[:]),
		base64.StdEncoding.EncodeToString(nonce), security, created)
}

// envelope returns a SOAP request.
func envelope(header, namespace, operation, arguments string) []byte {
	return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+
		`<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Header>%s</s:Header>`+
		`<s:Body><%s xmlns="%s">%s</%s></s:Body></s:Envelope>`,
		header, operation, namespace, arguments, operation)
}
