// Package wsdiscovery has the messages of WS-Discovery that find ONVIF devices: it
// writes Probe and reads ProbeMatches, Hello and Bye.
//
// Both dialects are read, that of April 2005, which ONVIF prescribes, and that of January
// 2009; and what cameras send instead, such as a ProbeMatch outside of ProbeMatches.
//
// Always: what a message can contain is bounded. Never: a socket.
package wsdiscovery
