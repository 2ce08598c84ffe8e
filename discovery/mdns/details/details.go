package details

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"akri.sh/akri/discovery/details"
)

// AllServices in Details.Services stands for all types.
const AllServices = "*"

const (
	// maxServices bounds the types of services of one Configuration.
	maxServices = 50
	// maxPatternBytes bounds a pattern.
	maxPatternBytes = 256
	// maxDomainBytes bounds the domain, so that full names fit in a message.
	maxDomainBytes = 100
)

var (
	// serviceType matches types of services and sub-types. RFC 6335 permits neither
	// underscores nor more than 15 characters, but both are in use.
	serviceType = regexp.MustCompile(`^([^.\\]{1,63}\._[sS][uU][bB]\.)?(_[A-Za-z0-9_-]{1,62}\._([tT][cC]|[uU][dD])[pP])$`)
	// withMore matches a type with a domain or an instance.
	withMore = regexp.MustCompile(`_[A-Za-z0-9_-]{1,62}\._([tT][cC]|[uU][dD])[pP]`)
	domain   = regexp.MustCompile(`^[^.\\]{1,63}(\.[^.\\]{1,63})*$`)
)

// Details are the discoveryDetails of the handler mdns.
type Details struct {
	// Services are the types of services, such as "_http._tcp"; "*" stands for all.
	Services []string `json:"services"`
	// Domain is usually "local".
	Domain string `json:"domain"`
	// Instances and Hosts filter services by patterns for the names of services and hosts.
	Instances *details.Filter `json:"instances"`
	Hosts     *details.Filter `json:"hosts"`
	// TXT has a pattern for the value of each key that a service must have. A key with a
	// "!" before it must be missing, or not match.
	TXT map[string]string `json:"txt"`
	// Interfaces are patterns for the interfaces to use; if there are none, the handler
	// chooses.
	Interfaces []string `json:"interfaces"`
}

// Parse returns the discoveryDetails in a text. An error is a *details.Fault.
func Parse(text string) (Details, error) {
	d := Details{Domain: "local"}
	if err := details.Decode(text, &d, d.checkServices, d.checkDomain, d.checkFilters, d.checkTXT); err != nil {
		return Details{}, err
	}
	return d, nil
}

func (d *Details) checkServices() error {
	switch {
	case len(d.Services) == 0:
		return details.Faultf("services", "missing").Hintf(`list types of services, such as ["_http._tcp"], or ["*"] for all`)
	case len(d.Services) > maxServices:
		return details.Faultf("services", "more than %d", maxServices).Hintf("use several Configurations")
	}
	var mistakes []error
	for i, service := range d.Services {
		if service == AllServices || serviceType.MatchString(service) {
			continue
		}
		fault := details.Faultf(fmt.Sprintf("services[%d]", i), "%q is not a type of services", service)
		if found := withMore.FindString(service); found != "" {
			fault = fault.Hintf("write %s; the domain has a key of its own", found)
		} else {
			fault = fault.Hintf("write it like _http._tcp, or like _printer._sub._http._tcp for a sub-type")
		}
		mistakes = append(mistakes, fault)
	}
	return errors.Join(mistakes...)
}

func (d *Details) checkDomain() error {
	d.Domain = strings.TrimSuffix(d.Domain, ".")
	if len(d.Domain) > maxDomainBytes || !domain.MatchString(d.Domain) {
		return details.Faultf("domain", "%q is not a domain", d.Domain).Hintf("leave it out, or write local")
	}
	return nil
}

func (d *Details) checkFilters() error {
	mistakes := []error{checkPatterns("interfaces", d.Interfaces)}
	for path, filter := range map[string]*details.Filter{"instances": d.Instances, "hosts": d.Hosts} {
		mistakes = append(mistakes, filter.Check(path))
		if filter != nil {
			mistakes = append(mistakes, checkPatterns(path+".items", filter.Items))
		}
	}
	return errors.Join(mistakes...)
}

func checkPatterns(path string, patterns []string) error {
	for i, pattern := range patterns {
		if pattern == "" || len(pattern) > maxPatternBytes {
			return details.Faultf(fmt.Sprintf("%s[%d]", path, i), "a pattern has %d bytes", len(pattern)).
				Hintf("write 1 to %d; * matches anything", maxPatternBytes)
		}
	}
	return nil
}

func (d *Details) checkTXT() error {
	seen := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(d.TXT)) {
		name, pattern := strings.ToLower(strings.TrimPrefix(key, "!")), d.TXT[key]
		path := "txt." + key
		switch {
		case name == "" || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' || r == '=' }):
			return details.Faultf(path, "not a key of a TXT record").Hintf("use printable ASCII characters other than =")
		case len(pattern) > maxPatternBytes:
			return details.Faultf(path, "a pattern has %d bytes", len(pattern)).Hintf("write at most %d", maxPatternBytes)
		}
		form := strings.ToLower(key)
		if former, repeated := seen[form]; repeated {
			return details.Faultf(path, "the same key as %s, as case does not matter", former).Hintf("remove one of them")
		}
		seen[form] = key
	}
	return nil
}

// UsesInterface reports whether to use an interface with this name. isDefault applies if
// discoveryDetails list none.
func (d Details) UsesInterface(name string, isDefault bool) bool {
	if len(d.Interfaces) == 0 {
		return isDefault
	}
	return slices.ContainsFunc(d.Interfaces, func(pattern string) bool { return details.Glob(pattern, name) })
}

// Admits reports whether a service passes the filters. The case of names and of keys
// does not matter, as in DNS; that of values does. text returns the value of a key.
func (d Details) Admits(instance, host string, text func(key string) (string, bool)) bool {
	if !d.Instances.Admits(matchName, instance) || !d.Hosts.Admits(matchName, host, strings.TrimSuffix(host, "."+d.Domain)) {
		return false
	}
	for key, pattern := range d.TXT {
		name, negated := strings.CutPrefix(key, "!")
		value, found := text(name)
		// A key without a pattern only has to exist.
		matches := found && (pattern == "" || details.Glob(pattern, value))
		if matches == negated {
			return false
		}
	}
	return true
}

func matchName(pattern, name string) bool {
	return details.Glob(strings.ToLower(pattern), strings.ToLower(name))
}
