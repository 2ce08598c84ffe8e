// Package soap calls the operations of an ONVIF device.
//
// A [Client] sends a request with a UsernameToken, and repeats it with HTTP digest
// authentication if the device demands that. Passwords never leave the process: both
// schemes send digests.
//
// Always: a call ends within its deadline, an answer has a bounded size, and credentials
// go only to the host in the URL of the call. Never: a proxy, a redirect to another
// host, Basic authentication, or a credential in an error.
package soap
