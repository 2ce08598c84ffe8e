// Package browse finds the services that announce themselves by Multicast DNS (RFC 6762)
// and DNS-SD (RFC 6763), and keeps track of them.
//
//	browser := browse.New(browse.Options{})
//	err := browser.Browse(ctx, browse.Query{Types: []string{"_http._tcp"}}, func(services []browse.Service) error {
//		// The full list, when it is first known and whenever it has changed.
//	})
//
// A service is listed once its host, port and address are known. It is removed when it
// says goodbye, or when its records have expired and many questions about them have
// remained unanswered. Lost packets alone do not remove it.
//
// Read machine.go and link.go first: they decide everything, without clock or network.
// browser.go and network.go drive the machine.
//
// Always: memory, packets and work are bounded, see limits.go. Never: a request to the
// address of a service; a message to anything but the multicast groups of mDNS.
package browse
