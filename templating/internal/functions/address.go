package functions

import (
	"errors"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
)

var addressFunctions = []Function{
	{Name: "urlParse", Group: "Addresses and paths",
		What: "the parts of a URL: scheme, host, hostname, port, path, query, fragment, userinfo, opaque", min: 1, max: 1, slow: true,
		Example: `(urlParse INSTANCE_PROPERTIES.URL).hostname`, Result: `"10.0.0.5"`,
		run: text1e(urlParse)},
	{Name: "urlJoin", Group: "Addresses and paths", What: "a URL assembled from such parts", min: 1, max: 1,
		Example: `urlJoin (dict "scheme" "http" "host" "10.0.0.5:80" "path" "/x")`, Result: `"http://10.0.0.5:80/x"`,
		run: urlJoin},
	{Name: "joinHostPort", Group: "Addresses and paths", What: "HOST:PORT, with brackets around an IPv6 address", min: 2, max: 2,
		Example: `joinHostPort "fe80::1" 554`, Result: `"[fe80::1]:554"`,
		run: joinHostPort},
	{Name: "splitHostPort", Group: "Addresses and paths",
		What: "host and port of HOST:PORT; port is empty if there is none", min: 1, max: 1,
		Example: `(splitHostPort "[fe80::1]:554").host`, Result: `"fe80::1"`,
		run: text1e(splitHostPort)},
	{Name: "isIP", Group: "Addresses and paths", What: "whether the string is an IP address", min: 1, max: 1,
		Example: `isIP INSTANCE_PROPERTIES.IP`, Result: `true`,
		run: text1e(func(s string) (any, error) {
			_, err := netip.ParseAddr(s)
			return err == nil, nil
		})},
	{Name: "isIPv6", Group: "Addresses and paths", What: "whether the string is an IPv6 address", min: 1, max: 1,
		Example: `isIPv6 "fe80::1"`, Result: `true`,
		run: text1e(func(s string) (any, error) {
			address, err := netip.ParseAddr(s)
			return err == nil && address.Is6() && !address.Is4In6(), nil
		})},
	{Name: "cidrContains", Group: "Addresses and paths", What: "whether the network contains the IP address", min: 2, max: 2,
		Example: `cidrContains "10.0.0.0/8" INSTANCE_PROPERTIES.IP`, Result: `true`,
		run: cidrContains},
	{Name: "base", Group: "Addresses and paths", What: "the last element of a path", min: 1, max: 1,
		Example: `base "/dev/video0"`, Result: `"video0"`,
		run: text1(path.Base)},
	{Name: "dir", Group: "Addresses and paths", What: "a path without its last element", min: 1, max: 1, slow: true,
		Example: `dir "/dev/video0"`, Result: `"/dev"`,
		run: text1(path.Dir)},
	{Name: "ext", Group: "Addresses and paths", What: "the extension of a path, from its last dot", min: 1, max: 1,
		Example: `ext "a.mp4"`, Result: `".mp4"`,
		run: text1(path.Ext)},
	{Name: "clean", Group: "Addresses and paths", What: "the shortest form of a path", min: 1, max: 1, slow: true,
		Example: `clean "/a//b/../c"`, Result: `"/a/c"`,
		run: text1(path.Clean)},
	{Name: "isAbs", Group: "Addresses and paths", What: "whether the path begins with /", min: 1, max: 1,
		Example: `isAbs "/dev"`, Result: `true`,
		run: text1e(func(s string) (any, error) { return path.IsAbs(s), nil })},
}

func urlParse(s string) (any, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, errors.New("the string is not a URL") // err quotes the text, which may be a property
	}
	userinfo := ""
	if u.User != nil {
		userinfo = u.User.String()
	}
	return map[string]any{
		"scheme": u.Scheme, "host": u.Host, "hostname": u.Hostname(), "port": u.Port(), "path": u.Path,
		"query": u.RawQuery, "fragment": u.Fragment, "userinfo": userinfo, "opaque": u.Opaque,
	}, nil
}

func urlJoin(_ *budget.Budget, args []any) (any, error) {
	parts, err := mapArg(args, 0)
	if err != nil {
		return nil, err
	}
	part := func(name string) string {
		s, ok := parts[name].(string)
		if parts[name] != nil && !ok {
			err = errors.New("the parts of a URL must be strings")
		}
		return s
	}
	u := url.URL{
		Scheme: part("scheme"), Host: part("host"), Path: part("path"),
		RawQuery: part("query"), Fragment: part("fragment"), Opaque: part("opaque"),
	}
	if userinfo := part("userinfo"); userinfo != "" {
		name, password, found := strings.Cut(userinfo, ":")
		if u.User = url.User(name); found {
			u.User = url.UserPassword(name, password)
		}
	}
	return u.String(), err
}

func joinHostPort(b *budget.Budget, args []any) (any, error) {
	host, err := textArg(args, 0)
	if err != nil {
		return nil, err
	}
	port, err := toInt(args[1])
	if n, _ := port.(int64); err != nil || n < 0 || n > 65535 {
		return nil, errors.New("the port must be a whole number from 0 to 65535")
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.FormatInt(port.(int64), 10), nil
}

func splitHostPort(s string) (any, error) {
	host, port := s, ""
	if inside, after, found := strings.Cut(strings.TrimPrefix(s, "["), "]"); found && strings.HasPrefix(s, "[") {
		host, port = inside, strings.TrimPrefix(after, ":")
	} else if strings.Count(s, ":") == 1 {
		host, port, _ = strings.Cut(s, ":")
	}
	return map[string]any{"host": host, "port": port}, nil
}

func cidrContains(_ *budget.Budget, args []any) (any, error) {
	network, err := textArg(args, 0)
	if err != nil {
		return nil, err
	}
	s, err := textArg(args, 1)
	if err != nil {
		return nil, err
	}
	prefix, err := netip.ParsePrefix(network)
	if err != nil {
		return nil, fault.Hintf("write it like 10.0.0.0/8", "argument 1 is not a network")
	}
	address, err := netip.ParseAddr(s)
	if err != nil {
		return nil, errors.New("argument 2 is not an IP address")
	}
	return prefix.Contains(address.Unmap()), nil
}
