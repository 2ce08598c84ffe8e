// Package server serves the webhook to the API server.
//
// Always: every replica serves, with the certificate that package certs provides or that
// somebody else puts into a directory. The number of connections and the time of each part of a
// request are bounded, so that others who reach the port cannot keep the API server out.
//
// Never: reads a request to another path than the registered one.
package server
