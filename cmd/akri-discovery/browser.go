package main

import (
	"context"

	"akri.sh/akri/discovery/mdns/browse"
	"akri.sh/akri/discovery/opcua"
)

// browser finds OPC UA servers by mDNS.
type browser struct{ *browse.Browser }

// Browse implements [opcua.Browser].
func (b browser) Browse(ctx context.Context, service string, found func([]opcua.Service)) error {
	return b.Browser.Browse(ctx, browse.Query{Types: []string{service}}, func(services []browse.Service) error {
		list := make([]opcua.Service, 0, len(services))
		for _, s := range services {
			text := make(map[string]string, len(s.TXT))
			for _, pair := range s.TXT {
				text[pair.Key] = pair.Value
			}
			list = append(list, opcua.Service{Instance: s.Instance, Host: s.Host, Port: s.Port, Addresses: s.Addresses, TXT: text})
		}
		found(list)
		return nil
	})
}
