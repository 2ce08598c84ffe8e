package soap

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strings"
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
	// UTC is the time of GetSystemDateAndTime.
	UTC struct {
		Year   string `xml:"Date>Year"`
		Month  string `xml:"Date>Month"`
		Day    string `xml:"Date>Day"`
		Hour   string `xml:"Time>Hour"`
		Minute string `xml:"Time>Minute"`
		Second string `xml:"Time>Second"`
	} `xml:"SystemDateAndTime>UTCDateTime"`
	// GUID is that of GetEndpointReference.
	GUID string
	// MACs and IPv4 are from GetNetworkInterfaces. An address is in an element that says
	// where it is from.
	MACs []string `xml:"NetworkInterfaces>Info>HwAddress"`
	IPv4 []struct {
		From []struct{ Address string } `xml:",any"`
	} `xml:"NetworkInterfaces>IPv4>Config"`
	// The following are from GetDeviceInformation.
	Manufacturer, Model, FirmwareVersion, SerialNumber string

	Hardware string `xml:"HardwareId"`
	// Media is the URL of a service, from GetCapabilities.
	Media string `xml:"Capabilities>Media>XAddr"`
	// Profiles are from GetProfiles.
	Profiles []struct {
		Token string `xml:"token,attr"`
	}
	// URI is from GetStreamUri or GetSnapshotUri.
	URI string `xml:"MediaUri>Uri"`
}

// parsing is held while an answer is parsed, because that may take many times its memory.
var parsing sync.Mutex

// answerOf reads the body of a response.
func answerOf(response *http.Response, body []byte) (Answer, error) {
	var answer Answer
	answer.Date, _ = http.ParseTime(response.Header.Get("Date")) // zero if there is none
	var read struct {
		XMLName xml.Name
		Body    struct {
			Fault *struct {
				Subcode string `xml:"Code>Subcode>Value"`
				Detail  string `xml:"Code>Subcode>Subcode>Value"`
				Code    string `xml:"faultcode"` // of SOAP 1.1
			}
			Response Response `xml:",any"`
		}
	}
	parsing.Lock()
	err := envelope.Decode(body, &read)
	parsing.Unlock()
	found := read.Body.Response
	if errors.Is(err, envelope.ErrTooLarge) && found.XMLName.Local != "" {
		err = nil // what counts in a long list is at its beginning
	}
	switch fault := read.Body.Fault; {
	case err == nil && read.XMLName.Local == "Envelope" && fault != nil:
		return answer, faultOf(fault.Subcode + fault.Detail + fault.Code)
	case response.StatusCode != http.StatusOK:
		return answer, &StatusError{Code: response.StatusCode}
	case err != nil:
		return answer, err
	case read.XMLName.Local != "Envelope" || found.XMLName.Local == "":
		return answer, errors.New("not a SOAP envelope with a response")
	}
	answer.Response = found
	return answer, nil
}

// Fault is a SOAP fault.
type Fault struct {
	// Unauthorized means that the device wants other credentials.
	Unauthorized bool
}

// faultOf returns a fault with some codes.
func faultOf(codes string) *Fault {
	for _, word := range []string{"NotAuthorized", "FailedAuthentication", "SenderNotAuthorized"} {
		if strings.Contains(codes, word) {
			return &Fault{Unauthorized: true}
		}
	}
	return &Fault{}
}

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
