package templating

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

var nameFunctions = []Function{
	{Name: "dnsLabel", Group: "Names", What: "a name of at most 63 characters for any object: the arguments joined by -; what had to be changed gets a hash at its end, so that different devices keep different names", least: 1, most: -1, slow: true,
		Example: `dnsLabel INSTANCE_NAME "Front Door"`, Result: `"cam-8120fe-front-door-34229bdd"`, run: nameOf(63, isLabelByte, "-")},
	{Name: "dnsSubdomain", Group: "Names", What: "as dnsLabel with at most 253 characters and with dots", least: 1, most: -1, slow: true,
		Example: `dnsSubdomain "node.example.com" "cam"`, Result: `"node.example.com-cam"`, run: nameOf(253, isSubdomainByte, "-.")},
	{Name: "labelValue", Group: "Names", What: "a value for a label: at most 63 letters, digits, dashes, underscores and dots", least: 1, most: -1, slow: true,
		Example: `labelValue "rtsp://10.0.0.5"`, Result: `"rtsp---10.0.0.5-b16cb71d"`, run: nameOf(63, isLabelValueByte, "-_.")},
	{Name: "shortHash", Group: "Names", What: "eight hexadecimal digits that depend on all of the text", least: 1, most: 1, slow: true,
		Example: `shortHash "a"`, Result: `"ca978112"`, run: text1(shortHash)},
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

func isLabelByte(c byte) bool {
	return c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z'
}

func isSubdomainByte(c byte) bool { return c == '.' || isLabelByte(c) }

func isLabelValueByte(c byte) bool { return isSubdomainByte(c) || isWordByte(c) }

// nameOf joins the arguments and makes the result fit: other bytes become a
// dash, the ends lose what may not stand there, and if that changed anything the
// hash of what it was is appended.
func nameOf(longest int, allowed func(byte) bool, notAtEnds string) impl {
	return func(m *machine, args []any) (any, error) {
		original, err := m.joinList(args, "-")
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
		if name == original && len(name) <= longest && (name != "" || allowed('A')) {
			return name, nil
		}
		hash := shortHash(original)
		name = strings.TrimRight(name[:min(len(name), longest-len(hash)-1)], notAtEnds)
		if name == "" {
			return hash, nil
		}
		return name + "-" + hash, nil
	}
}

// joinLabels leaves out empty labels between dots, and dashes beside dots.
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
