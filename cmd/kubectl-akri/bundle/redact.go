package bundle

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Redacted replaces what is left out.
const Redacted = "REDACTED"

// minScrubbed is the length from which a value that was left out of one object is also
// replaced wherever else it occurs. Shorter values occur by chance.
const minScrubbed = 6

var (
	// credentialWords are found in the names of credentials, in lower case and without
	// separators.
	credentialWords = []string{
		"password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "credential", "apikey", "accesskey", "privatekey",
		"signingkey", "authorization", "cookie", "connectionstring", "community",
	}
	// credentialParts are names of credentials, or the last part of such a name. Within
	// other words, they are common.
	credentialParts = []string{"pass", "psk"}
	// references end the names of fields that only say where a credential is, or what
	// it is like.
	references = []string{"name", "ref", "file", "path", "dir", "namespace", "mode", "seconds", "kind", "type", "class"}
	separators = strings.NewReplacer("-", "", "_", "", ".", "", " ", "")
)

// isCredential reports whether a field, variable or flag of this name may hold a
// credential.
func isCredential(name string) bool {
	part := name[strings.LastIndexAny(name, "-_. ")+1:]
	if slices.Contains(credentialParts, strings.ToLower(part)) || strings.HasSuffix(part, "Pass") {
		return true
	}
	name = separators.Replace(strings.ToLower(name))
	return !isReference(name) && slices.ContainsFunc(credentialWords, func(word string) bool { return strings.Contains(name, word) })
}

func isReference(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(references, func(end string) bool { return strings.HasSuffix(name, end) })
}

// Redactor leaves out what may be a credential. It remembers the values of fields that
// it has left out, so that they are found in other places, too. It is safe for concurrent
// use, and its zero value is ready.
type Redactor struct {
	mu   sync.Mutex
	seen map[string]bool
}

// Object returns a copy of an object without credentials: values of fields, properties,
// environment variables and arguments with the name of a credential, all values of
// discoveryProperties, the data of Secrets, the CA and the path of webhooks,
// managedFields, and the copy of the object that kubectl apply keeps.
func (r *Redactor) Object(object map[string]any) map[string]any {
	return r.fields(object, false)
}

// fields copies a map. If all is set, it is the value of a credential.
func (r *Redactor) fields(from map[string]any, all bool) map[string]any {
	to := make(map[string]any, len(from))
	kind, _ := from["kind"].(string)
	name, _ := from["name"].(string)
	for key, value := range from {
		switch {
		case key == "managedFields", key == "kubectl.kubernetes.io/last-applied-configuration":
		case key == "caBundle":
			to[key] = Redacted
		case kind == "Secret" && (key == "data" || key == "stringData"):
			to[key] = r.value(value, true)
		case key == "discoveryProperties":
			to[key] = r.discoveryProperties(value)
		case key == "clientConfig":
			to[key] = r.clientConfig(value)
		case key == "value" && isCredential(name): // of an environment variable
			to[key] = r.value(value, true)
		case key == "args", key == "command":
			to[key] = r.arguments(value)
		default:
			to[key] = r.value(value, isCredential(key) || all && !isReference(key))
		}
	}
	return to
}

// value copies a value. If all is set, it is that of a credential.
func (r *Redactor) value(value any, all bool) any {
	switch value := value.(type) {
	case map[string]any:
		return r.fields(value, all)
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = r.value(item, all)
		}
		return list
	case string:
		if all {
			return r.leaveOut(value)
		}
		return r.Text(value)
	case int64, float64:
		if all {
			return Redacted
		}
	}
	return value
}

// discoveryProperties leaves out all values: handlers get credentials as properties of
// any name.
func (r *Redactor) discoveryProperties(value any) any {
	list, _ := r.value(value, false).([]any)
	original, _ := value.([]any)
	for i, item := range list {
		if property, ok := item.(map[string]any); ok && property["value"] != nil {
			property["value"] = r.value(original[i].(map[string]any)["value"], true)
		}
	}
	return list
}

// clientConfig leaves out the path of a webhook, which protects it from other clients.
func (r *Redactor) clientConfig(value any) any {
	copied := r.value(value, false)
	if fields, ok := copied.(map[string]any); ok {
		if service, ok := fields["service"].(map[string]any); ok && service["path"] != nil {
			service["path"] = r.value(service["path"], true)
		}
	}
	return copied
}

// arguments copies a command line. The value of a flag may be the next argument.
func (r *Redactor) arguments(value any) any {
	list, ok := r.value(value, false).([]any)
	if !ok {
		return r.value(value, false)
	}
	for i := 1; i < len(list); i++ {
		flag, _ := list[i-1].(string)
		argument, _ := list[i].(string)
		if strings.HasPrefix(flag, "-") && isCredential(flag) && !strings.Contains(flag, "=") && !strings.HasPrefix(argument, "-") {
			list[i] = r.leaveOut(argument)
		}
	}
	return list
}

// leaveOut remembers a value and returns its replacement.
func (r *Redactor) leaveOut(value string) string {
	if value == "" {
		return ""
	}
	if len(value) >= minScrubbed {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.seen == nil {
			r.seen = map[string]bool{}
		}
		r.seen[value] = true
	}
	return Redacted
}

var (
	userInfo   = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#"'<>]+@`)
	bearer     = regexp.MustCompile(`(?i)\b(bearer) +[A-Za-z0-9._~+/=-]{8,}`)
	jsonToken  = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`)
	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)
	// assignment matches name=value, name:value and "name": "value", and yamlField a
	// line of YAML. "cannot read the secret: timeout" is neither.
	assignment = regexp.MustCompile(`([A-Za-z0-9_.-]+)(["']?=\\?|["'] *: *|:)(\\?"[^"]*"|'[^']*'|[^\s,;&"'}\]]+)`)
	yamlField  = regexp.MustCompile(`(?m)^([ \t]*(?:- +)?["']?)([A-Za-z0-9_.-]+)(["']?:[ \t]+)(\S.*)$`)
)

// Text returns a text without credentials as far as their form, or the name next to
// them, tells them: private keys, tokens, user information in URLs, and assignments
// such as password=….
func (r *Redactor) Text(text string) string {
	text = privateKey.ReplaceAllString(text, Redacted)
	text = jsonToken.ReplaceAllString(text, Redacted)
	text = bearer.ReplaceAllString(text, "$1 "+Redacted)
	text = userInfo.ReplaceAllString(text, "${1}"+Redacted+"@")
	text = replaceNamed(text, yamlField, 2, 4)
	return replaceNamed(text, assignment, 1, 3)
}

// replaceNamed replaces the value in each match whose name is that of a credential.
func replaceNamed(text string, pattern *regexp.Regexp, name, value int) string {
	var b strings.Builder
	last := 0
	for _, match := range pattern.FindAllStringSubmatchIndex(text, -1) {
		if isCredential(text[match[2*name]:match[2*name+1]]) {
			b.WriteString(text[last:match[2*value]])
			b.WriteString(Redacted)
			last = match[2*value+1]
		}
	}
	return b.String() + text[last:]
}

// scrubber returns a replacer of all values that were left out of an object wherever they occur in a
// text, also in base64.
func (r *Redactor) scrubber() *strings.Replacer {
	r.mu.Lock()
	defer r.mu.Unlock()
	var values []string
	for value := range r.seen {
		values = append(values, value, base64.StdEncoding.EncodeToString([]byte(value)))
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) }) // the longest match wins
	var pairs []string
	for _, value := range values {
		pairs = append(pairs, value, Redacted)
	}
	return strings.NewReplacer(pairs...)
}
