package services

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	realm = "camera"
	// nonceLifetime is how long a client may use a nonce of the server.
	nonceLifetime = time.Minute
)

// digest authenticates HTTP requests by RFC 7616, with MD5 as ONVIF requires.
type digest struct {
	users *Users
	key   []byte // of the nonces, which are not stored
}

func newDigest(users *Users) *digest {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return &digest{users: users, key: key}
}

// protect passes requests with valid credentials to next.
func (d *digest) protect(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if d.users.open() {
			next(w, r)
			return
		}
		valid, stale := d.verify(r)
		if valid && !stale {
			next(w, r)
			return
		}
		challenge := fmt.Sprintf(`Digest realm=%q, qop="auth", algorithm=MD5, nonce=%q`, realm, d.nonce(d.users.now()))
		if stale {
			challenge += ", stale=true"
		}
		w.Header().Set("WWW-Authenticate", challenge)
		http.Error(w, "the user name or the password is wrong", http.StatusUnauthorized)
	}
}

// nonce returns a time with a signature.
func (d *digest) nonce(at time.Time) string {
	text := strconv.FormatInt(at.UnixMilli(), 16)
	mac := hmac.New(sha256.New, d.key)
	mac.Write([]byte(text))
	return text + "-" + hex.EncodeToString(mac.Sum(nil)[:16])
}

// verify reports whether a request proves knowledge of the password, and whether only
// its nonce is too old.
func (d *digest) verify(r *http.Request) (valid, stale bool) {
	given := parseDigest(r.Header.Get("Authorization"))
	if given == nil || given["uri"] != r.URL.RequestURI() || given["qop"] != "auth" || given["realm"] != realm {
		return false, false
	}
	text, _, _ := strings.Cut(given["nonce"], "-")
	milliseconds, err := strconv.ParseInt(text, 16, 64)
	if err != nil {
		return false, false
	}
	issued := time.UnixMilli(milliseconds)
	if !equal(d.nonce(issued), given["nonce"]) {
		return false, false
	}
	user := hash(d.users.username + ":" + realm + ":" + d.users.password)
	request := hash(r.Method + ":" + given["uri"])
	want := hash(strings.Join([]string{user, given["nonce"], given["nc"], given["cnonce"], "auth", request}, ":"))
	valid = equal(want, given["response"]) && equal(given["username"], d.users.username)
	return valid, valid && d.users.now().Sub(issued) > nonceLifetime
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func hash(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// parseDigest returns the parameters of the header Authorization, or nil if it is not
// of the kind Digest.
func parseDigest(header string) map[string]string {
	scheme, rest, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Digest") {
		return nil
	}
	parameters := map[string]string{}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimLeft(rest, ", ") {
		name, after, found := strings.Cut(rest, "=")
		if !found {
			return nil
		}
		var value string
		if quoted, ok := strings.CutPrefix(after, `"`); ok {
			if value, rest, found = strings.Cut(quoted, `"`); !found {
				return nil
			}
		} else {
			value, rest, _ = strings.Cut(after, ",")
		}
		parameters[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
	}
	return parameters
}
