// Package wire reads and writes the messages of Multicast DNS (RFC 6762), as far as
// browsing for services (RFC 6763) needs them: the record types PTR, SRV, TXT, A and AAAA.
//
// golang.org/x/net/dns/dnsmessage cannot be used for this: it rejects every message with a
// dot within a label, and names of service instances, such as "Printer 2.1", contain dots.
//
// Always: the time to read a message is proportional to its size. Never: a reference to
// the packet in what has been read from it.
package wire
