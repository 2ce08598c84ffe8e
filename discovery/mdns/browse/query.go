package browse

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"akri.sh/akri/discovery/mdns/browse/wire"
)

const (
	// AllTypes in [Query.Types] requests services of every type that is announced (RFC
	// 6763, section 9).
	AllTypes = "*"
	// enumeration begins the names whose PTR records are the announced types.
	enumeration = "_services._dns-sd._udp."
)

// Query says which services to find.
type Query struct {
	// Types are types of services, such as "_http._tcp", sub-types, such as
	// "_printer._sub._http._tcp", or AllTypes.
	Types []string
	// Domain is local, that of Multicast DNS, if it is empty.
	Domain string
	// Interfaces reports whether to use an interface. If it is nil, those are used that
	// [Interface.Default] reports.
	Interfaces func(Interface) bool
}

// names returns the names to browse.
func (q Query) names() ([]wire.Name, error) {
	if len(q.Types) == 0 {
		return nil, errors.New("there is no type of services to browse")
	}
	domain := "." + cmp.Or(q.Domain, "local")
	var names []wire.Name
	for _, text := range q.Types {
		if text == AllTypes {
			text = strings.TrimSuffix(enumeration, ".")
		}
		name, err := wire.ParseName(text + domain)
		if err != nil {
			return nil, err
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
		return i.Default()
	}
	return q.Interfaces(i)
}

// isEnumeration reports whether a name's PTR records are types.
func isEnumeration(name wire.Name) bool { return strings.HasPrefix(name.Key(), enumeration) }

// isType reports whether a name is that of a type of services, such as _http._tcp.local.
func isType(name wire.Name) bool {
	protocol := wire.Name(name.Parent().First()).Key()
	return strings.HasPrefix(name.First(), "_") && (protocol == "_tcp" || protocol == "_udp")
}

// serviceType returns the name of the type, without a sub-type.
func serviceType(browsed wire.Name) wire.Name {
	if parent := browsed.Parent(); wire.Name(parent.First()).Key() == "_sub" {
		return parent.Parent()
	}
	return browsed
}
