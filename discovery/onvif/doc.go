// Package onvif is a discovery handler for network cameras and other devices that
// implement ONVIF.
//
// It sends probes of WS-Discovery on each network interface, listens for Hello and Bye, and
// asks each device for its properties. Read tracker.go, which decides which cameras
// exist, then session.go, which does the work for a request of an agent. Package
// wsdiscovery has the messages, package soap the calls.
//
// Always: a lost packet does not make a camera disappear, and what a network can send is
// bounded (limits.go). Never: a request to another host than the one that has announced
// itself, unless the Configuration permits it; a credential in a property, an error or
// the log.
package onvif
