// Package services serves what an ONVIF camera serves by HTTP: the device service, the
// media service, pictures, and a stream of pictures.
//
// The services require a WS-UsernameToken with a password digest, except for the
// operations that ONVIF leaves open to everybody. Pictures require HTTP digest
// authentication. Without a user name, everything is open.
//
// Always: a token is accepted once. Never: a password in an answer or a log.
package services
