package services

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxRequest bounds the body of a SOAP request.
const maxRequest = 64 << 10

// envelope is a SOAP request, as far as the services read it.
type envelope struct {
	XMLName xml.Name `xml:"http://www.w3.org/2003/05/soap-envelope Envelope"`
	Header  struct {
		Security struct {
			Token *usernameToken `xml:"UsernameToken"`
		} `xml:"http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd Security"`
	}
	Body struct {
		Content []byte `xml:",innerxml"`
		// Request is the first element, whose name is the operation.
		Request struct {
			XMLName      xml.Name
			ProfileToken string
		} `xml:",any"`
	}
}

// readEnvelope reads a request.
func readEnvelope(w http.ResponseWriter, r *http.Request) (envelope, error) {
	var request envelope
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return request, fmt.Errorf("read the request: %w", err)
	}
	if bytes.Contains(body, []byte("<!DOCTYPE")) {
		return request, errors.New("the request has a document type declaration, which SOAP forbids")
	}
	if err := xml.Unmarshal(body, &request); err != nil {
		return request, fmt.Errorf("parse the request: %w", err)
	}
	if request.Body.Request.XMLName.Local == "" {
		return request, errors.New("the body of the request is empty")
	}
	return request, nil
}

// fault is a SOAP fault of ONVIF.
type fault struct {
	status  int
	Code    string // Sender or Receiver
	Subcode string // in ONVIF's namespace of errors
	Detail  string // in the namespace of errors, if not empty
	Reason  string
}

// The faults that the services answer with. ONVIF's core specification, section 5.8.2,
// has them.
var (
	notAuthorized = fault{http.StatusBadRequest, "Sender", "NotAuthorized", "",
		"Sender not authorized: the user name, the password or the time of the token is wrong, or the token was used before"}
	notImplemented = fault{http.StatusInternalServerError, "Receiver", "ActionNotSupported", "",
		"This camera does not implement the operation"}
	noProfile = fault{http.StatusBadRequest, "Sender", "InvalidArgVal", "NoProfile", "There is no media profile of that token"}
)

// malformed returns the fault for a request that cannot be read.
func malformed(err error) fault {
	return fault{http.StatusBadRequest, "Sender", "WellFormed", "", err.Error()}
}
