// Package onvif fetches pictures from an ONVIF camera: it finds the camera's picture by
// the device and media services, and gives the credentials that the camera wants, a
// WS-UsernameToken for the services and HTTP digest for the picture.
//
// Always: every answer is bounded in size and time. Never: a request to another host than
// the camera's, wherever its answers and redirects lead; a password in an error.
package onvif
