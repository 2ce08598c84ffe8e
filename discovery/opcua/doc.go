// Package opcua discovers OPC UA servers: at URLs of servers or discovery servers, on the
// network of a discovery server, by mDNS, and by scanning networks.
//
// Read search.go, which polls; presence.go, which forgets servers only after several
// misses; merge.go, which makes one device of an application with several URLs; and
// reach.go, which decides what the handler may connect to. Package uatcp speaks the
// protocol.
//
// Always: the id of a device is the URL that Akri's handler would use, as long as that is
// reachable. What a discovery server reports makes the handler connect only to that
// discovery server's own host, unless the author allows others. Never: a session with a
// server, or a value of one in the log.
package opcua
