// Package mdns is the discovery handler mdns: it finds services that announce themselves
// in the network by Multicast DNS and DNS-SD, such as printers, cameras and gateways.
//
// Package browse does the work. This package filters the services and makes devices of
// them.
//
// Never: a request to a device; a property with a value that is not text.
package mdns
