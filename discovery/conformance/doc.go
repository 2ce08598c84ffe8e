// Package conformance checks a discovery handler against the contract of
// [discovery.Handler], over its gRPC endpoint. The handler may be written in any
// language. Package handlertest runs the checks in tests; akri-discovery check runs them
// on the command line.
//
// [Check] calls a handler as agents do. [Agent] takes the part of an agent that a handler
// registers with.
//
// Always: each rule has a result, and each wait has a bound. Never: a check that depends
// on what a handler finds.
package conformance
