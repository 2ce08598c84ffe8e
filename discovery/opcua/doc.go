// Package opcua discovers OPC UA servers: at URLs of servers or discovery servers, on the
// network of a discovery server, by mDNS, and by scanning networks.
//
// Read search.go, which polls the servers of the details and those of finders.go;
// target.go, which polls one server or discovery server and forgets what it reports only
// after several misses; server.go, which looks up what its answer does not say; reach.go,
// which decides what the handler may connect to; and merge.go, which makes one device of an
// application with several URLs. Package uatcp speaks the protocol.
//
// Always: the id of a server is the URL that Akri's handler would use, but has the host that was
// asked if a server that answers there reports only other addresses. What a discovery server
// reports makes the handler connect only to that discovery server's own host, unless the author
// allows others. Never: a session with a server, or a value of one in the log.
package opcua
