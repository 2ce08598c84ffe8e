package bundle

import (
	"regexp"
	"slices"
	"strings"
)

// level says what may be shown of a value.
type level int

const (
	// open is the level of a value that is no credential, as far as its name tells.
	open level = iota
	// reference is that of a value that says where a credential is: it is shown if it
	// looks like a name or a path.
	reference
	// credential is that of a value that may be a credential. Of a map, only what says
	// where the credential is may be shown.
	credential
)

var (
	// credentialWords are found in the names of credentials, in lower case and without
	// separators.
	credentialWords = []string{
		"password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "credential", "apikey", "accesskey", "privatekey",
		"signingkey", "sharedkey", "accountkey", "encryptionkey", "clientkey", "authorization", "cookie", "connectionstring", "community",
	}
	// credentialParts are names of credentials, or the last part of such a name. Within
	// other words, they are common.
	credentialParts = []string{"pass", "psk", "auth"}
	separators      = strings.NewReplacer("-", "", "_", "", ".", "", " ", "")
)

// levelOf returns the level of a field, variable or flag with a name.
func levelOf(name string) level {
	if strings.Count(name, " ") > 1 {
		return open // it is a sentence
	}
	part := name[strings.LastIndexAny(name, "-_. ")+1:]
	if slices.Contains(credentialParts, strings.ToLower(part)) || strings.HasSuffix(part, "Pass") {
		return credential
	}
	name = separators.Replace(strings.ToLower(name))
	switch {
	case !slices.ContainsFunc(credentialWords, func(word string) bool { return strings.Contains(name, word) }):
		return open
	case isReference(name):
		return reference
	}
	return credential
}

// A shape is what values look like that say where a credential is, or what it is like.
type shape struct {
	ends    []string // of the names of their fields, in lower case
	pattern *regexp.Regexp
}

var shapes = []shape{
	{[]string{"name", "ref", "namespace"}, regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)},
	// An absolute path, the name of a file with an extension, or a field of a Pod.
	{[]string{"file", "path", "dir"}, regexp.MustCompile(
		`^(~|\.{1,2})?/[\w./-]*$|^[\w-]+(/[\w-]+)*(\.[a-z]{1,6}){1,2}$|^(metadata|spec|status)\.[\w.'/\[\]-]+$`)},
	{[]string{"mode", "seconds"}, regexp.MustCompile(`^\d{1,10}$|^[A-Za-z,]{1,40}$`)},
	{[]string{"kind", "type", "class"}, regexp.MustCompile(`^[A-Za-z]+([./-][A-Za-z]+)*$`)},
}

var (
	// keyName matches keys of Secrets, and paths below the directory of a volume.
	keyName = regexp.MustCompile(`^[\w./-]{1,63}$`)
	// random matches what names that people choose do not have: many letters and digits in a row.
	random = regexp.MustCompile(`[A-Za-z0-9]{20,}`)
	// failure matches what the API server says about a field.
	failure = regexp.MustCompile(`^(Required|Invalid|Duplicate|Unsupported) value\b|^(Forbidden|Not found|Too long|Too many|Internal error)\b`)
	// expression matches an expression of a template or of Kubernetes, without a text in it.
	expression = regexp.MustCompile("\\{\\{[^\"'`{}]*\\}\\}|\\$\\([\\w.-]+\\)")
)

// isReference reports whether the name of a field ends like that of a reference.
func isReference(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(shapes, func(s shape) bool { return s.has(name) })
}

func (s *shape) has(name string) bool {
	return slices.ContainsFunc(s.ends, func(end string) bool { return strings.HasSuffix(name, end) })
}

// refers reports whether the value of a field whose name ends like that of a reference
// looks like one. Others are credentials, such as one in place of the path of its file.
func refers(name, value string) bool {
	if expression.ReplaceAllString(value, "") == "" || failure.MatchString(value) {
		return true
	}
	value, name = expression.ReplaceAllString(value, "x"), strings.ToLower(name)
	return !isRandom(value) && slices.ContainsFunc(shapes, func(s shape) bool { return s.has(name) && s.pattern.MatchString(value) })
}

// isRandom reports whether a value has a part that no person has chosen as a name.
func isRandom(value string) bool {
	run := random.FindString(value)
	return strings.ContainsAny(run, "0123456789")
}

// isKey reports whether the field key of a map that has a level says which key of a Secret
// becomes a variable, or a file of a volume.
func isKey(fields map[string]any, of level) bool {
	key, _ := fields["key"].(string)
	if !keyName.MatchString(key) || isRandom(key) {
		return false
	}
	if name, ok := fields["name"].(string); ok && of == reference {
		return refers("name", name)
	}
	return isFile(fields)
}

// isFile reports whether a map says which key of a Secret becomes a file of a volume.
func isFile(fields map[string]any) bool {
	for field := range fields {
		if !slices.Contains([]string{"key", "path", "mode"}, field) {
			return false
		}
	}
	path, _ := fields["path"].(string)
	return fields["key"] != nil && keyName.MatchString(path) && !isRandom(path)
}
