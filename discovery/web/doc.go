// Package web is the discovery handler http. It finds devices that are web servers: from
// a list of URLs, or from an index that lists them.
//
// Always: the operator's rules about networks hold for the address that is connected to,
// after names are resolved. A response, an index and the number of requests at the same
// time are bounded. Never: a redirect is followed, or a password is sent to a host that
// the Configuration does not name.
package web
