package functions

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

var addressFunctions = []Function{
	{Name: "urlParse", What: "the parts of a URL: scheme, host, hostname, port, path, query, fragment, userinfo, opaque", takes: "string",
		Example: `(urlParse INSTANCE_PROPERTIES.URL).hostname`, Result: `"10.0.0.5"`, slow: true,
		Unlike: "has no port, and fails with the string in the message", run: urlParse},
	{Name: "urlJoin", What: "a URL assembled from such parts", takes: "map", Unlike: "loses a userinfo that needs escapes",
		Example: `urlJoin (dict "scheme" "http" "host" "10.0.0.5:80" "path" "/x")`, Result: `"http://10.0.0.5:80/x"`, run: urlJoin},
	{Name: "joinHostPort", What: "HOST:PORT, with brackets around an IPv6 address", takes: "string any",
		Example: `joinHostPort "fe80::1" 554`, Result: `"[fe80::1]:554"`, run: joinHostPort},
	{Name: "splitHostPort", What: "host and port of HOST:PORT; port is empty if there is none", takes: "string",
		Example: `(splitHostPort "[fe80::1]:554").host`, Result: `"fe80::1"`, run: splitHostPort},
	{Name: "isIP", What: "whether the string is an IP address", takes: "string", Example: `isIP INSTANCE_PROPERTIES.IP`, Result: `true`,
		run: plain(func(s string) bool {
			_, err := netip.ParseAddr(s)
			return err == nil
		})},
	{Name: "isIPv6", What: "whether the string is an IPv6 address", takes: "string", Example: `isIPv6 "fe80::1"`, Result: `true`,
		run: plain(func(s string) bool {
			address, err := netip.ParseAddr(s)
			return err == nil && address.Is6() && !address.Is4In6()
		})},
	{Name: "cidrContains", What: "whether the network contains the IP address", takes: "string string",
		Example: `cidrContains "10.0.0.0/8" INSTANCE_PROPERTIES.IP`, Result: `true`, run: cidrContains},
	{Name: "base", What: "the last element of a path", takes: "string", Example: `base "/dev/video0"`, Result: `"video0"`},
	{Name: "dir", What: "a path without its last element", takes: "string", slow: true, Example: `dir "/dev/video0"`, Result: `"/dev"`},
	{Name: "ext", What: "the extension of a path, from its last dot", takes: "string", Example: `ext "a.mp4"`, Result: `".mp4"`},
	{Name: "clean", What: "the shortest form of a path", takes: "string", slow: true, Example: `clean "/a//b/../c"`, Result: `"/a/c"`},
	{Name: "isAbs", What: "whether the path begins with /", takes: "string", Example: `isAbs "/dev"`, Result: `true`},
}

func urlParse(_ *budget.Budget, args []any) (any, error) {
	u, err := url.Parse(args[0].(string))
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
	parts, _ := value.AsMap(args[0])
	var err error
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
	host := args[0].(string)
	port, err := toInt(b, args[1:])
	if n, _ := port.(int64); err != nil || n < 0 || n > 65535 {
		return nil, errors.New("the port must be a whole number from 0 to 65535")
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.FormatInt(port.(int64), 10), nil
}

func splitHostPort(_ *budget.Budget, args []any) (any, error) {
	s := args[0].(string)
	host, port := s, ""
	if inside, after, found := strings.Cut(strings.TrimPrefix(s, "["), "]"); found && strings.HasPrefix(s, "[") {
		host, port = inside, strings.TrimPrefix(after, ":")
	} else if strings.Count(s, ":") == 1 {
		host, port, _ = strings.Cut(s, ":")
	}
	return map[string]any{"host": host, "port": port}, nil
}

func cidrContains(_ *budget.Budget, args []any) (any, error) {
	prefix, err := netip.ParsePrefix(args[0].(string))
	if err != nil {
		return nil, fault.Hintf("write it like 10.0.0.0/8", "argument 1 is not a network")
	}
	address, err := netip.ParseAddr(args[1].(string))
	if err != nil {
		return nil, errors.New("argument 2 is not an IP address")
	}
	return prefix.Contains(address.Unmap()), nil
}
