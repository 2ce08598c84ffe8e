package browse

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"akri.sh/akri/discovery/mdns/browse/wire"
)

// AllTypes in [Query.Types] requests services of every type that is announced (RFC 6763,
// section 9).
const AllTypes = "*"

// DefaultDomain is the domain of Multicast DNS.
const DefaultDomain = "local"

// Query says which services to find.
type Query struct {
	// Types are types of services, such as "_http._tcp", sub-types, such as
	// "_printer._sub._http._tcp", or AllTypes.
	Types []string
	// Domain is DefaultDomain if it is empty.
	Domain string
	// Interfaces reports whether to use an interface. If it is nil, those are used that
	// [Interface.Default] reports.
	Interfaces func(Interface) bool
	// Reserve is called with the memory of the query and of its latest list, before the
	// list is published. If it returns an error, there are no more lists: the caller of
	// [Browser.Browse] ends the query. It may be nil.
	Reserve func(bytes int) error
}

// enumeration returns the name whose PTR records are the announced types.
func enumeration(domain string) string { return "_services._dns-sd._udp." + domain }

// typeName returns the name to browse for a type.
func typeName(text, domain string) (wire.Name, error) {
	if text == AllTypes {
		text = strings.TrimSuffix(enumeration(""), ".")
	} else if labels := strings.Split(text, "."); !wire.IsServiceType(labels) && !wire.IsSubtype(labels) {
		return "", errors.New(`not a type of services: want a form like _http._tcp or _printer._sub._http._tcp`)
	}
	return wire.ParseName(text + "." + domain)
}

// Validate returns an error if the query has no type, or a wrong type or domain.
func (q Query) Validate() error {
	_, err := q.names()
	return err
}

// names returns the names to browse.
func (q Query) names() ([]wire.Name, error) {
	domain := q.Domain
	if domain == "" {
		domain = DefaultDomain
	}
	if name, err := wire.ParseName(domain); err != nil || name == "" {
		return nil, fmt.Errorf("%q is not a domain", domain)
	}
	if len(q.Types) == 0 {
		return nil, errors.New("there is no type of services to browse")
	}
	var names []wire.Name
	for _, text := range q.Types {
		name, err := typeName(text, domain)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// uses reports whether to use an interface.
func (q Query) uses(i Interface) bool {
	if q.Interfaces == nil {
		return i.Default
	}
	return q.Interfaces(i)
}

// isEnumeration reports whether a name's PTR records are types.
func isEnumeration(name wire.Name) bool { return strings.HasPrefix(name.Key(), enumeration("")) }

// serviceType returns the name of the type, without a sub-type.
func serviceType(browsed wire.Name) wire.Name {
	if parent := browsed.Parent(); wire.Name(parent.First()).Key() == "_sub" {
		return parent.Parent()
	}
	return browsed
}
