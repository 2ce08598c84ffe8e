// Package wsdiscovery makes a device discoverable by WS-Discovery (April 2005), as ONVIF
// requires: Hello and Bye, and answers to Probe and Resolve, on one network interface.
//
// [Parse] and [Target.Matches] are pure; [Run] is the socket around them.
//
// Always: a message is answered once, after a random delay, as the specification says.
// Never: an answer to a message that does not match, or more than maxPending at a time.
package wsdiscovery
