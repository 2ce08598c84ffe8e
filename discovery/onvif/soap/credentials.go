package soap

import (
	"cmp"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/http"
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

// algorithms are those of RFC 7616, the strongest first.
var algorithms = []string{"SHA-512-256", "SHA-512", "SHA-256", "MD5"}

// authorize returns the header Authorization for the strongest challenge in the header of a
// response; "" if none is a digest that is supported. Basic is not: it would send the
// password.
func (c *Credentials) authorize(header http.Header, method, uri string) string {
	strongest, authorization := len(algorithms), ""
	for _, value := range header.Values("WWW-Authenticate") {
		challenge, err := digest.ParseChallenge(value)
		if err != nil {
			continue
		}
		algorithm := cmp.Or(strings.ToUpper(challenge.Algorithm), "MD5")
		rank := slices.Index(algorithms, algorithm)
		challenge.QOP = strings.FieldsFunc(strings.Join(challenge.QOP, ","), func(r rune) bool { return r == ',' || r == ' ' })
		protects := len(challenge.QOP) > 0 && !challenge.SupportsQOP("auth") // the body as well
		if rank < 0 || rank >= strongest || protects {
			continue
		}
		options := digest.Options{Method: method, URI: uri, Username: c.Username, Password: c.Password}
		if answer, err := digest.Digest(challenge, options); err == nil {
			strongest, authorization = rank, answer.String()
		}
	}
	return authorization
}
