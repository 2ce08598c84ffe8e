package soap

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"

	"akri.sh/akri/discovery/onvif/envelope"
)

// Answer is what a device has answered.
type Answer struct {
	Response Response
	// Date is the device's time in the header, if any.
	Date time.Time
}

// Response is the element in the body of an answer: what is read of the responses of all
// operations. Texts are as the device writes them, with spaces around them.
type Response struct {
	XMLName xml.Name
	// Clock is from GetSystemDateAndTime.
	Clock struct {
		UTC      DateTime `xml:"UTCDateTime"`
		Local    DateTime `xml:"LocalDateTime"`
		TimeZone string   `xml:"TimeZone>TZ"`
	} `xml:"SystemDateAndTime"`
	// GUID is that of GetEndpointReference.
	GUID string
	// Scopes are from GetScopes.
	Scopes []string `xml:"Scopes>ScopeItem"`
	// Interfaces are from GetNetworkInterfaces.
	Interfaces []Interface `xml:"NetworkInterfaces"`
	// The following are from GetDeviceInformation.
	Manufacturer, Model, FirmwareVersion, SerialNumber string

	Hardware string `xml:"HardwareId"`
	// Media is the URL of a service, from GetCapabilities.
	Media string `xml:"Capabilities>Media>XAddr"`
	// Services are from GetServices.
	Services []struct{ Namespace, XAddr string } `xml:"Service"`
	// Profiles are from GetProfiles.
	Profiles []struct {
		Token string `xml:"token,attr"`
	}
	// URI is from GetStreamUri or GetSnapshotUri, and URI2 from those of the second version of
	// the media service.
	URI  string `xml:"MediaUri>Uri"`
	URI2 string `xml:"Uri"`
}

// DateTime is a time that a device tells.
type DateTime struct {
	Year   string `xml:"Date>Year"`
	Month  string `xml:"Date>Month"`
	Day    string `xml:"Date>Day"`
	Hour   string `xml:"Time>Hour"`
	Minute string `xml:"Time>Minute"`
	Second string `xml:"Time>Second"`
}

// Interface is a network interface of a device. An address is in an element that says where it
// is from.
type Interface struct {
	Enabled string
	MAC     string `xml:"Info>HwAddress"`
	IPv4    struct {
		Enabled string
		Config  struct {
			From []Address `xml:",any"`
		}
	}
	IPv6 struct {
		Config struct {
			From []Address `xml:",any"`
		}
	}
}

// Address is an address of an Interface.
type Address struct{ Address string }

// parsing is held while an answer is parsed, because that may take many times its memory.
var parsing sync.Mutex

// answerOf reads the body of a response.
func answerOf(response reply) (Answer, error) {
	var answer Answer
	answer.Date, _ = http.ParseTime(response.header.Get("Date")) // zero if there is none
	var read struct {
		XMLName xml.Name
		Body    struct {
			Fault *struct {
				Value   string `xml:"Code>Value"`
				Subcode string `xml:"Code>Subcode>Value"`
				Detail  string `xml:"Code>Subcode>Subcode>Value"`
				Reason  string `xml:"Reason>Text"`
				Code    string `xml:"faultcode"` // of SOAP 1.1
				Text    string `xml:"faultstring"`
			}
			Response Response `xml:",any"`
		}
	}
	parsing.Lock()
	err := envelope.Decode(response.body, &read)
	parsing.Unlock()
	isEnvelope := read.XMLName.Local == "Envelope"
	switch fault := read.Body.Fault; {
	case response.status == http.StatusUnauthorized:
		return answer, &StatusError{Code: response.status}
	case isEnvelope && fault != nil:
		return answer, faultOf(fault.Value + fault.Subcode + fault.Detail + fault.Code + fault.Reason + fault.Text)
	case isEnvelope && read.Body.Response.XMLName.Local != "":
		answer.Response = read.Body.Response // as far as it is XML, and whatever the status says
		return answer, nil
	case response.status != http.StatusOK:
		return answer, &StatusError{Code: response.status}
	case err != nil:
		return answer, err
	}
	return answer, errors.New("not a SOAP envelope with a response")
}

// Fault is a SOAP fault.
type Fault struct {
	// Unauthorized means that the device wants other credentials.
	Unauthorized bool
}

// refusal matches the codes and reasons by which devices demand other credentials.
var refusal = regexp.MustCompile(`(?i)not ?authori|unauthori|authenticat|authority failure|InvalidSecurity|MessageExpired`)

// faultOf returns a fault with its codes and reasons.
func faultOf(texts string) *Fault { return &Fault{Unauthorized: refusal.MatchString(texts)} }

// Error implements error. It has no text of the device.
func (f *Fault) Error() string {
	if f.Unauthorized {
		return "the device refuses the credentials"
	}
	return "the device answers with a SOAP fault"
}

// StatusError is an answer with another status than 200 and without SOAP.
type StatusError struct{ Code int }

// Error implements error.
func (e *StatusError) Error() string { return fmt.Sprintf("HTTP status %d", e.Code) }

// Unauthorized reports whether a device wants other credentials.
func Unauthorized(err error) bool {
	fault, isFault := errors.AsType[*Fault](err)
	status, isStatus := errors.AsType[*StatusError](err)
	return isFault && fault.Unauthorized ||
		isStatus && (status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden)
}

// Alive reports whether the result of a call shows that an ONVIF device is there, even if
// it refuses the call.
func Alive(err error) bool {
	if err == nil {
		return true
	}
	if _, ok := errors.AsType[*Fault](err); ok {
		return true
	}
	status, ok := errors.AsType[*StatusError](err)
	return ok && (status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden || status.Code == http.StatusBadRequest)
}
