package soap

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"strings"
	"time"
)

// Credentials are the name and password of a user. They do not appear in formatted text.
type Credentials struct {
	Username, Password string
}

// String implements fmt.Stringer.
func (Credentials) String() string { return "(credentials)" }

// GoString implements fmt.GoStringer.
func (Credentials) GoString() string { return "(credentials)" }

// token returns the header of WS-Security with a UsernameToken whose password is a
// digest; "" without credentials. The device accepts it only near the time now of its
// own clock.
func (c *Credentials) token(now time.Time) string {
	if c == nil {
		return ""
	}
	var nonce [16]byte
	rand.Read(nonce[:]) // never fails
	created := now.UTC().Format("2006-01-02T15:04:05.000Z")
	return tokenOf(c.Username, passwordDigest(nonce[:], created, c.Password), nonce[:], created)
}

func tokenOf(username, digest string, nonce []byte, created string) string {
	const oasis = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-"
	return fmt.Sprintf(`<wsse:Security s:mustUnderstand="1" xmlns:wsse="%[1]swssecurity-secext-1.0.xsd"`+
		` xmlns:wsu="%[1]swssecurity-utility-1.0.xsd"><wsse:UsernameToken><wsse:Username>%[2]s</wsse:Username>`+
		`<wsse:Password Type="%[1]susername-token-profile-1.0#PasswordDigest">%[3]s</wsse:Password>`+
		`<wsse:Nonce EncodingType="%[1]ssoap-message-security-1.0#Base64Binary">%[4]s</wsse:Nonce>`+
		`<wsu:Created>%[5]s</wsu:Created></wsse:UsernameToken></wsse:Security>`,
		oasis, Escape(username), digest, base64.StdEncoding.EncodeToString(nonce), created)
}

// passwordDigest is the digest of the UsernameToken profile 1.0.
func passwordDigest(nonce []byte, created, password string) string {
	sum := sha1.New()
	sum.Write(nonce)
	sum.Write([]byte(created + password))
	return base64.StdEncoding.EncodeToString(sum.Sum(nil))
}

// Escape returns text as it is written in XML.
func Escape(text string) string {
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(text)) // a Builder does not fail
	return escaped.String()
}

// algorithms are the hash functions of RFC 7616 that are supported.
var algorithms = map[string]func(string) string{
	"SHA-256": func(text string) string { sum := sha256.Sum256([]byte(text)); return hex.EncodeToString(sum[:]) },
	"MD5":     func(text string) string { sum := md5.Sum([]byte(text)); return hex.EncodeToString(sum[:]) },
}

// authorize returns the header Authorization for the strongest challenge; "" if none is a
// digest that is supported. Basic is not: it would send the password.
func (c *Credentials) authorize(challenges []string, method, uri string) string {
	for _, algorithm := range []string{"SHA-256", "MD5"} {
		for _, challenge := range challenges {
			scheme, rest, _ := strings.Cut(strings.TrimSpace(challenge), " ")
			if !strings.EqualFold(scheme, "Digest") {
				continue
			}
			parameters := parseParameters(rest)
			if offered := parameters["algorithm"]; strings.EqualFold(offered, algorithm) || offered == "" && algorithm == "MD5" {
				if header := c.digest(parameters, algorithm, method, uri, rand.Text()); header != "" {
					return header
				}
			}
		}
	}
	return ""
}

// digest answers a challenge as RFC 7616 prescribes, or RFC 2069 if it has no qop.
func (c *Credentials) digest(challenge map[string]string, algorithm, method, uri, cnonce string) string {
	hash := algorithms[algorithm]
	ha1 := hash(c.Username + ":" + challenge["realm"] + ":" + c.Password)
	ha2 := hash(method + ":" + uri)
	header := fmt.Sprintf(`Digest username="%s", realm="%s", nonce="%s", uri="%s"`,
		quote(c.Username), quote(challenge["realm"]), quote(challenge["nonce"]), quote(uri))
	switch qop := challenge["qop"]; {
	case qop == "":
		header += fmt.Sprintf(`, response="%s"`, hash(ha1+":"+challenge["nonce"]+":"+ha2))
	case hasToken(qop, "auth"):
		response := hash(ha1 + ":" + challenge["nonce"] + ":00000001:" + cnonce + ":auth:" + ha2)
		header += fmt.Sprintf(`, response="%s", qop=auth, nc=00000001, cnonce="%s"`, response, cnonce)
	default:
		return ""
	}
	if challenge["algorithm"] != "" {
		header += ", algorithm=" + algorithm
	}
	if opaque, found := challenge["opaque"]; found {
		header += fmt.Sprintf(`, opaque="%s"`, quote(opaque))
	}
	return header
}

func hasToken(list, token string) bool {
	for item := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(item), token) {
			return true
		}
	}
	return false
}

// quote escapes text for a quoted string of a header, without control characters.
func quote(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)
}

// parseParameters parses the parameters of a challenge: names with values, which may be
// quoted.
func parseParameters(text string) map[string]string {
	parameters := map[string]string{}
	for text != "" {
		name, rest, found := strings.Cut(text, "=")
		if !found {
			break
		}
		var value string
		if rest = strings.TrimLeft(rest, " "); strings.HasPrefix(rest, `"`) {
			value, rest = unquote(rest[1:])
		} else {
			end := strings.IndexByte(rest, ',')
			if end < 0 {
				end = len(rest)
			}
			value, rest = strings.TrimSpace(rest[:end]), rest[end:]
		}
		parameters[strings.ToLower(strings.TrimSpace(name))] = value
		_, text, _ = strings.Cut(rest, ",")
	}
	return parameters
}

// unquote returns the text up to the closing quote, and what follows.
func unquote(text string) (value, rest string) {
	var unquoted strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return unquoted.String(), text[i+1:]
		case text[i] == '\\' && i+1 < len(text):
			i++
		}
		unquoted.WriteByte(text[i])
	}
	return unquoted.String(), ""
}
