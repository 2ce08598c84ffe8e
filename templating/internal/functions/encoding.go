package functions

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"unicode/utf8"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/value"
)

var encodingFunctions = []Function{
	{Name: "b64enc", What: "Base64", takes: "string", slow: true, Example: `b64enc "abc"`, Result: `"YWJj"`},
	{Name: "b64dec", What: "the string that Base64 encodes", takes: "string", slow: true, Example: `b64dec "YWJj"`, Result: `"abc"`,
		Unlike: "gives the error as the result",
		run: func(_ *budget.Budget, args []any) (any, error) {
			decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(args[0].(string)))
			switch {
			case err != nil:
				return nil, errors.New("the string is not Base64")
			case !utf8.Valid(decoded):
				return nil, errors.New("the decoded bytes are not UTF-8")
			}
			return string(decoded), nil
		}},
	{Name: "b32enc", What: "Base32", takes: "string", slow: true, Example: `b32enc "abc"`, Result: `"MFRGG==="`},
	{Name: "sha1sum", What: "SHA-1 in hexadecimal digits", takes: "string", slow: true,
		Example: `sha1sum "a"`, Result: `"86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"`},
	{Name: "sha256sum", What: "SHA-256 in hexadecimal digits", takes: "string", slow: true,
		Example: `sha256sum "a"`, Result: `"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"`},
	{Name: "sha512sum", What: "SHA-512 in hexadecimal digits", takes: "string", slow: true,
		Example: `sha512sum "a" | trunc 16`, Result: `"1f40fc92da241694"`},
	{Name: "adler32sum", What: "Adler-32 as a decimal number", takes: "string", slow: true,
		Example: `adler32sum "a"`, Result: `"6422626"`},
	{Name: "toJson", What: "JSON on one line", takes: "any", deep: true, bound: payForJSON(0),
		Example: `toJson NODES`, Result: `"[\"node-a\",\"node-b\"]"`},
	{Name: "toPrettyJson", What: "JSON on many lines", takes: "any", deep: true, bound: payForJSON(2),
		Example: `toPrettyJson (list 1)`, Result: `"[\n  1\n]"`},
	{Name: "toRawJson", What: "JSON in which <, > and & stay", takes: "any", deep: true, bound: payForJSON(0),
		Example: `toRawJson (list "a&b")`, Result: `"[\"a&b\"]"`},
	{Name: "urlquery", What: "escaped for the query of a URL", takes: "string", slow: true,
		Example: `urlquery "a b&c"`, Result: `"a+b%26c"`, run: plain(url.QueryEscape)},
}

// payForJSON returns a bound that pays for the JSON of a value that Measure has accepted.
func payForJSON(indent int) func(*budget.Budget, []any) error {
	return func(b *budget.Budget, args []any) error {
		size := jsonSize(args[0], 1, indent)
		if size > budget.MaxObjectBytes {
			return b.TooLarge()
		}
		return b.Pay(int64(size), 8*int64(size))
	}
}

// jsonSize estimates the length of the JSON of a value, without escapes. It stops
// counting once the result is too long.
func jsonSize(v any, depth, indent int) int {
	size := 2 + depth*indent
	if text, isText := v.(string); isText {
		return size + len(text)
	}
	if value.IsScalar(v) {
		return size + 8
	}
	list, _ := v.([]any)
	for _, element := range list {
		if size += jsonSize(element, depth+1, indent) + 1 + depth*indent; size > budget.MaxObjectBytes {
			break
		}
	}
	fields, _ := value.AsMap(v)
	for key, element := range fields {
		if size += len(key) + 4 + jsonSize(element, depth+1, indent) + depth*indent; size > budget.MaxObjectBytes {
			break
		}
	}
	return size
}
