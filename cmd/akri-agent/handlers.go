package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"

	"akri.sh/akri/agent"
	"akri.sh/akri/agent/discover/hostpaths"
	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/discovery/debugecho"
	"akri.sh/akri/discovery/embeddable"
)

// handlerFlags adds the flags that say what discovery handlers are trusted with.
func handlerFlags(flags *pflag.FlagSet, options *agent.Options) {
	flags.Var(&prefixes{&options.NetworkHandlers.Addresses}, "allow-network-handlers",
		"CIDRs of the addresses at which discovery handlers may listen on the network, comma-separated; "+
			"without TLS, any process at such an address can get the values of discoveryProperties; default: none")
	flags.StringVar(&options.NetworkHandlers.CAFile, "network-handlers-ca-file", "",
		"PEM file of the CA of discovery handlers on the network; their certificates must be valid for the handler's name")
	flags.StringVar(&options.NetworkHandlers.CertFile, "network-handlers-cert-file", "",
		"PEM file of the agent's certificate for discovery handlers on the network")
	flags.StringVar(&options.NetworkHandlers.KeyFile, "network-handlers-key-file", "",
		"PEM file of the key of that certificate")
	flags.Var(&statics{&options.StaticHandlers}, "static-handlers",
		"discovery handlers on the network that do not register: NAME=HOST:PORT, or NAME=HOST:PORT+shared if other nodes see the "+
			"same devices; comma-separated. Needs --allow-network-handlers or --network-handlers-ca-file")
	options.HostPaths.DeviceFiles, _ = hostpaths.Parse([]string{defaultDeviceFiles})
	flags.Var(&pathRules{list: &options.HostPaths.DeviceFiles, defaults: options.HostPaths.DeviceFiles, text: defaultDeviceFiles},
		"allow-device-files",
		"device files that discovery handlers may give to containers: HANDLER=DIRECTORY[:ro], comma-separated; "+
			"HANDLER is a name, * for all on Unix sockets, or NAME@network for one on the network. The default applies "+
			"unless its handler has a rule; HANDLER= permits nothing to that handler, and an empty value nothing to any without a rule")
	flags.Var(&pathRules{list: &options.HostPaths.Mounts}, "allow-mounts",
		"files and directories of the node that discovery handlers may mount into containers, in the same form; default: none")
}

// embeddedFlag adds the flag of the discovery handlers in this process.
func embeddedFlag(flags *pflag.FlagSet, options *agent.Options, environment func(string) string) {
	flags.Var(&embedded{list: &options.EmbeddedHandlers, environment: environment}, "embedded-handlers",
		"discovery handlers to run in the agent's process, comma-separated: "+strings.Join(embeddable.Names(), ", ")+
			"; debugEcho needs the environment variable "+debugecho.SharedVariable+"; default: none")
}

// defaultDeviceFiles permits what the built-in handlers need. Device files reach containers
// past Pod security admission, so handlers of others must be permitted by name.
const defaultDeviceFiles = "udev=/dev"

// prefixes is the value of a flag with CIDRs.
type prefixes struct{ list *[]netip.Prefix }

func (p *prefixes) Type() string   { return "CIDRs" }
func (p *prefixes) String() string { return "" }

func (p *prefixes) Set(value string) error {
	for one := range strings.SplitSeq(value, ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(one))
		if err != nil {
			return fmt.Errorf("%q: want a CIDR, such as 10.244.0.0/16", one)
		}
		*p.list = append(*p.list, prefix.Masked())
	}
	return nil
}

// statics is the value of a flag with static handlers.
type statics struct{ list *[]registry.Entry }

func (s *statics) Type() string   { return "handlers" }
func (s *statics) String() string { return "" }

func (s *statics) Set(value string) error {
	for one := range strings.SplitSeq(value, ",") {
		handler, err := registry.ParseStatic(strings.TrimSpace(one))
		if err != nil {
			return err
		}
		*s.list = append(*s.list, handler)
	}
	return nil
}

// embedded is the value of the flag with handlers in this process.
type embedded struct {
	list        *[]embeddable.Handler
	environment func(string) string
	names       []string
}

func (e *embedded) Type() string   { return "names" }
func (e *embedded) String() string { return "" }

func (e *embedded) Set(value string) (err error) {
	if value == "" {
		return nil
	}
	for name := range strings.SplitSeq(value, ",") {
		e.names = append(e.names, strings.TrimSpace(name))
	}
	*e.list, err = embeddable.Select(e.names, e.environment)
	return err
}

// pathRules is the value of a flag with rules for paths, and of defaults for other handlers.
type pathRules struct {
	list            *hostpaths.Rules
	given, defaults hostpaths.Rules
	text            string
}

func (r *pathRules) Type() string   { return "rules" }
func (r *pathRules) String() string { return r.text }

func (r *pathRules) Set(value string) error {
	parsed, err := hostpaths.Parse(strings.Split(cmp.Or(value, "*="), ","))
	r.given = append(r.given, parsed...)
	*r.list = r.given.WithDefaults(r.defaults)
	return err
}
