package functions

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"akri.sh/akri/templating/internal/budget"
)

var nameFunctions = []Function{
	{Name: "dnsLabel", takes: "any+", slow: true,
		What: "a name of at most 63 characters for any object: the arguments joined by -; a hash is appended if " +
			"anything had to be changed, so that different devices keep different names",
		Example: `dnsLabel INSTANCE_NAME "Front Door"`, Result: `"cam-8120fe-front-door-34229bdd"`,
		run: nameOf(63, isLabelByte, "-")},
	{Name: "dnsSubdomain", What: "as dnsLabel, with at most 253 characters and with dots", takes: "any+", slow: true,
		Example: `dnsSubdomain "node.example.com" "cam"`, Result: `"node.example.com-cam"`,
		run: nameOf(253, isSubdomainByte, "-.")},
	{Name: "labelValue", takes: "any+", slow: true,
		What:    "a value for a label: at most 63 letters, digits, dashes, underscores and dots",
		Example: `labelValue "rtsp://10.0.0.5"`, Result: `"rtsp---10.0.0.5-b16cb71d"`,
		run: nameOf(63, isLabelValueByte, "-_.")},
	{Name: "shortHash", What: "eight hexadecimal digits that depend on all of the string", takes: "string", slow: true,
		Example: `shortHash "a"`, Result: `"ca978112"`, run: plain(shortHash)},
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

func isLabelByte(c byte) bool {
	return c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z'
}

func isSubdomainByte(c byte) bool { return c == '.' || isLabelByte(c) }

func isLabelValueByte(c byte) bool { return isSubdomainByte(c) || c == '_' || 'A' <= c && c <= 'Z' }

// nameOf returns a function that joins its arguments into a valid name. Other
// bytes become a dash, and characters not allowed at the ends are trimmed. If that
// changed anything, a hash of the original is appended.
func nameOf(maxLength int, allowed func(byte) bool, notAtEnds string) impl {
	return func(b *budget.Budget, args []any) (any, error) {
		original, err := join(b, args, "-")
		if err != nil {
			return nil, err
		}
		fitted := []byte(original)
		if !allowed('A') {
			fitted = []byte(strings.ToLower(original))
		}
		for i, c := range fitted {
			if !allowed(c) {
				fitted[i] = '-'
			}
		}
		name := strings.Trim(string(fitted), notAtEnds)
		if !allowed('A') {
			name = joinLabels(name)
		}
		if name == original && len(name) <= maxLength && (name != "" || allowed('A')) {
			return name, nil
		}
		hash := shortHash(original)
		name = strings.TrimRight(name[:min(len(name), maxLength-len(hash)-1)], notAtEnds)
		if name == "" {
			return hash, nil
		}
		return name + "-" + hash, nil
	}
}

// joinLabels removes empty labels between dots, and dashes next to dots.
func joinLabels(name string) string {
	if !strings.Contains(name, ".") {
		return name
	}
	var labels []string
	for label := range strings.SplitSeq(name, ".") {
		if label = strings.Trim(label, "-"); label != "" {
			labels = append(labels, label)
		}
	}
	return strings.Join(labels, ".")
}
