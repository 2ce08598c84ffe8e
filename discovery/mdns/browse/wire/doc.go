// Package wire reads responses and writes queries of Multicast DNS (RFC 6762), as far as
// browsing for services (RFC 6763) needs them: the record types PTR, SRV, TXT, A and AAAA.
//
// Package dns, which it uses, escapes more characters of names than people want to see in
// the name of a device: [Name] has the form that Akri shows, and nothing else does.
//
// Always: the time to read a packet is bounded by its size, which [MaxPacketBytes] bounds.
// Never: a reference to the packet in what has been read from it.
package wire
