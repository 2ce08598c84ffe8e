package soap

import (
	"cmp"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/icholy/digest"
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
	const oasis = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-"
	return fmt.Sprintf(`<wsse:Security s:mustUnderstand="1" xmlns:wsse="%[1]swssecurity-secext-1.0.xsd"`+
		` xmlns:wsu="%[1]swssecurity-utility-1.0.xsd"><wsse:UsernameToken><wsse:Username>%[2]s</wsse:Username>`+
		`<wsse:Password Type="%[1]susername-token-profile-1.0#PasswordDigest">%[3]s</wsse:Password>`+
		`<wsse:Nonce EncodingType="%[1]ssoap-message-security-1.0#Base64Binary">%[4]s</wsse:Nonce>`+
		`<wsu:Created>%[5]s</wsu:Created></wsse:UsernameToken></wsse:Security>`,
		oasis, Escape(c.Username), passwordDigest(nonce[:], created, c.Password), base64.StdEncoding.EncodeToString(nonce[:]), created)
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

// algorithms are those of package digest, the strongest first.
var algorithms = []string{"SHA-512-256", "SHA-512", "SHA-256", "MD5"}

// authorize returns the header Authorization for a challenge in the header of a response; "" if
// none is supported.
func (c *Credentials) authorize(header http.Header, method, uri string) string {
	if challenge, err := FindChallenge(header); err == nil {
		options := digest.Options{Method: method, URI: uri, Username: c.Username, Password: c.Password}
		if answer, err := digest.Digest(challenge, options); err == nil {
			return answer.String()
		}
	}
	return ""
}

// FindChallenge returns the strongest challenge in the header of a response that is a digest
// and is supported. Basic is not: it would send the password. The error is
// [digest.ErrNoChallenge].
func FindChallenge(header http.Header) (*digest.Challenge, error) {
	strongest, found := len(algorithms), &digest.Challenge{}
	for _, value := range header.Values("WWW-Authenticate") {
		challenge, ok := parseChallenge(value)
		rank := slices.Index(algorithms, cmp.Or(strings.ToUpper(challenge.Algorithm), "MD5"))
		protects := len(challenge.QOP) > 0 && !challenge.SupportsQOP("auth") // the body as well
		if ok && rank >= 0 && rank < strongest && !protects {
			strongest, found = rank, &challenge
		}
	}
	if strongest == len(algorithms) {
		return nil, digest.ErrNoChallenge
	}
	return found, nil
}

var (
	digestScheme = regexp.MustCompile(`(?i)(?:^|[\s,])digest\s+`)
	// parameter matches a name with a value, which may be quoted.
	parameter = regexp.MustCompile(`(\w+)\s*=\s*(?:"((?:[^"\\[:cntrl:]]|\\[^[:cntrl:]])*)"|([^\s",[:cntrl:]]+))`)
	escaped   = regexp.MustCompile(`\\(.)`)
)

// parseChallenge reads a challenge of a camera. Package digest would refuse, or misunderstand,
// what some of them write: names in upper case, values without quotes, a comma at the end,
// another scheme in the same line.
func parseChallenge(header string) (challenge digest.Challenge, ok bool) {
	scheme := digestScheme.FindStringIndex(header)
	if scheme == nil {
		return challenge, false
	}
	values := map[string]string{}
	for _, found := range parameter.FindAllStringSubmatch(header[scheme[1]:], -1) {
		name := strings.ToLower(found[1])
		if _, known := values[name]; !known { // the next scheme has names of its own
			values[name] = escaped.ReplaceAllString(found[2], "$1") + found[3]
		}
	}
	qop := strings.FieldsFunc(values["qop"], func(r rune) bool { return r == ',' || r == ' ' })
	return digest.Challenge{
		Realm: values["realm"], Nonce: values["nonce"], Opaque: values["opaque"], Algorithm: values["algorithm"], QOP: qop,
		Charset: values["charset"], Userhash: strings.EqualFold(values["userhash"], "true"),
	}, values["nonce"] != ""
}
