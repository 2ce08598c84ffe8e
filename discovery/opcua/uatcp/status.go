package uatcp

import "fmt"

// StatusCode is the result of a service. It is an error, except for good ones.
type StatusCode uint32

// The status codes that discovery servers return for services that they do not offer, or
// not to everybody.
const (
	BadServiceUnsupported StatusCode = 0x800B0000
	BadNotImplemented     StatusCode = 0x80400000
	BadNotSupported       StatusCode = 0x803D0000
	BadUserAccessDenied   StatusCode = 0x801F0000
)

var statusNames = map[StatusCode]string{
	BadServiceUnsupported: "BadServiceUnsupported",
	BadNotImplemented:     "BadNotImplemented",
	BadNotSupported:       "BadNotSupported",
	BadUserAccessDenied:   "BadUserAccessDenied",
	0x80010000:            "BadUnexpectedError",
	0x80020000:            "BadInternalError",
	0x800E0000:            "BadServerHalted",
	0x80130000:            "BadSecurityChecksFailed",
	0x80540000:            "BadSecurityModeRejected",
	0x80550000:            "BadSecurityPolicyRejected",
	0x807D0000:            "BadTcpServerTooBusy",
	0x80800000:            "BadTcpMessageTooLarge",
	0x80820000:            "BadTcpInternalError",
	0x80830000:            "BadTcpEndpointUrlInvalid",
}

// good reports whether the service succeeded, possibly with uncertain results.
func (s StatusCode) good() bool { return s&0x80000000 == 0 }

// Error implements error.
func (s StatusCode) Error() string {
	if name, ok := statusNames[s]; ok {
		return "the server answered " + name
	}
	return fmt.Sprintf("the server answered with the status 0x%08X", uint32(s))
}
