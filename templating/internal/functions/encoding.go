package functions

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"unicode/utf8"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/value"
)

var encodingFunctions = []Function{
	{Name: "b64enc", Group: "Encoding", What: "Base64", min: 1, max: 1, slow: true,
		Example: `b64enc "abc"`, Result: `"YWJj"`,
		run: sprigText("b64enc")},
	{Name: "b64dec", Group: "Encoding", What: "the string that Base64 encodes", min: 1, max: 1, slow: true,
		Example: `b64dec "YWJj"`, Result: `"abc"`,
		run: text1e(func(s string) (any, error) {
			decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s))
			if err != nil {
				return nil, errors.New("the string is not Base64")
			}
			return validText(decoded)
		})},
	{Name: "b32enc", Group: "Encoding", What: "Base32", min: 1, max: 1, slow: true,
		Example: `b32enc "abc"`, Result: `"MFRGG==="`,
		run: sprigText("b32enc")},
	{Name: "sha1sum", Group: "Encoding", What: "SHA-1 in hexadecimal digits", min: 1, max: 1, slow: true,
		Example: `sha1sum "a"`, Result: `"86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"`,
		run: sprigText("sha1sum")},
	{Name: "sha256sum", Group: "Encoding", What: "SHA-256 in hexadecimal digits", min: 1, max: 1, slow: true,
		Example: `sha256sum "a"`, Result: `"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"`,
		run: sprigText("sha256sum")},
	{Name: "sha512sum", Group: "Encoding", What: "SHA-512 in hexadecimal digits", min: 1, max: 1, slow: true,
		Example: `sha512sum "a" | trunc 16`, Result: `"1f40fc92da241694"`,
		run: sprigText("sha512sum")},
	{Name: "adler32sum", Group: "Encoding", What: "Adler-32 as a decimal number", min: 1, max: 1, slow: true,
		Example: `adler32sum "a"`, Result: `"6422626"`,
		run: sprigText("adler32sum")},
	{Name: "toJson", Group: "Encoding", What: "JSON on one line", min: 1, max: 1, deep: true,
		Example: `toJson NODES`, Result: `"[\"node-a\",\"node-b\"]"`,
		run: func(b *budget.Budget, args []any) (any, error) { return encodeJSON(b, args[0], "", true) }},
	{Name: "toPrettyJson", Group: "Encoding", What: "JSON on many lines", min: 1, max: 1, deep: true,
		Example: `toPrettyJson (list 1)`, Result: `"[\n  1\n]"`,
		run: func(b *budget.Budget, args []any) (any, error) { return encodeJSON(b, args[0], "  ", true) }},
	{Name: "toRawJson", Group: "Encoding", What: "JSON in which <, > and & stay", min: 1, max: 1, deep: true,
		Example: `toRawJson (list "a&b")`, Result: `"[\"a&b\"]"`,
		run: func(b *budget.Budget, args []any) (any, error) { return encodeJSON(b, args[0], "", false) }},
	{Name: "urlquery", Group: "Encoding", What: "escaped for the query of a URL", min: 1, max: 1, slow: true,
		Example: `urlquery "a b&c"`, Result: `"a+b%26c"`,
		run: text1(url.QueryEscape)},
}

func validText(decoded []byte) (any, error) {
	if !utf8.Valid(decoded) {
		return nil, errors.New("the decoded bytes are not UTF-8")
	}
	return string(decoded), nil
}

// encodeJSON encodes a value that Measure has accepted.
func encodeJSON(b *budget.Budget, v any, indent string, escape bool) (any, error) {
	size := jsonSize(v, 1, len(indent))
	if size > budget.MaxObjectBytes {
		return nil, b.TooLarge()
	}
	if err := b.Allocate(8 * int64(size)); err != nil {
		return nil, err
	}
	if err := b.Step(int64(size)); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(escape)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(v); err != nil {
		return nil, value.ErrNotFinite // the only value without JSON
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// jsonSize estimates the length of the JSON of a value, without escapes. It stops
// counting once the result is too long.
func jsonSize(v any, depth, indent int) int {
	size := 2 + depth*indent
	switch v := v.(type) {
	case string:
		return size + len(v)
	case []any:
		for _, element := range v {
			if size += jsonSize(element, depth+1, indent) + 1 + depth*indent; size > budget.MaxObjectBytes {
				break
			}
		}
		return size
	}
	fields, ok := value.AsMap(v)
	if !ok {
		return size + 8
	}
	for key, element := range fields {
		if size += len(key) + 4 + jsonSize(element, depth+1, indent) + depth*indent; size > budget.MaxObjectBytes {
			break
		}
	}
	return size
}
