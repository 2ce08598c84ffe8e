// Package uatcp calls the discovery services of OPC UA servers: FindServers,
// FindServersOnNetwork and GetEndpoints, over OPC UA TCP (opc.tcp) without security, as
// the specification provides for discovery (OPC 10000-4, 5.4; OPC 10000-6).
//
// It exists because servers that were only discovered are not trusted: clients for
// trusted servers allocate as much memory as an answer announces, or trust the sizes of
// buffers that the server chooses.
//
// Always: each size and count in an answer is checked, an answer is decoded as it arrives, so
// that only one of its elements takes memory, and the context's deadline ends each call.
// Never: a connection of its own, a session, a goroutine that outlives a call, or a panic
// caused by an answer.
package uatcp
