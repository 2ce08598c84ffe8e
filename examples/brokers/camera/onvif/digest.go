package onvif

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"regexp"
	"strings"
	"sync"
)

// parameter matches a parameter of an HTTP challenge.
var parameter = regexp.MustCompile(`([a-zA-Z]+)\s*=\s*(?:"([^"]*)"|([^\s,"]+))`)

// digest answers the challenges of HTTP digest authentication (RFC 7616). It keeps the
// last challenge, so that not every request is sent twice.
type digest struct {
	mu        sync.Mutex
	challenge map[string]string
	count     int // of requests with this challenge
}

// accept stores the first challenge that it can answer, and reports whether there is one.
func (d *digest) accept(headers []string) bool {
	for _, header := range headers {
		scheme, rest, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Digest") {
			continue
		}
		challenge := map[string]string{}
		for _, match := range parameter.FindAllStringSubmatch(rest, -1) {
			challenge[strings.ToLower(match[1])] = match[2] + match[3]
		}
		if newHash(challenge["algorithm"]) == nil || challenge["nonce"] == "" {
			continue
		}
		d.mu.Lock()
		d.challenge, d.count = challenge, 0
		d.mu.Unlock()
		return true
	}
	return false
}

// newHash returns the constructor of a hash, or nil if the algorithm is unknown.
func newHash(algorithm string) func() hash.Hash {
	switch strings.ToUpper(algorithm) {
	case "", "MD5":
		return md5.New
	case "SHA-256":
		return sha256.New
	}
	return nil
}

// authorization returns the header Authorization for a request, or "" if there was no
// challenge or there is no user.
func (d *digest) authorization(method, uri, username, password string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.challenge == nil || username == "" {
		return ""
	}
	d.count++
	construct := newHash(d.challenge["algorithm"])
	sum := func(parts ...string) string {
		h := construct()
		h.Write([]byte(strings.Join(parts, ":")))
		return hex.EncodeToString(h.Sum(nil))
	}
	realm, nonce := d.challenge["realm"], d.challenge["nonce"]
	user, request := sum(username, realm, password), sum(method, uri)
	text := fmt.Sprintf(`Digest username="%s", realm="%s", nonce="%s", uri="%s"`, quote(username), quote(realm), quote(nonce), quote(uri))
	if strings.Contains(d.challenge["qop"], "auth") {
		count, own := fmt.Sprintf("%08x", d.count), rand.Text()
		text += fmt.Sprintf(`, qop=auth, nc=%s, cnonce="%s", response="%s"`, count, own, sum(user, nonce, count, own, "auth", request))
	} else {
		text += fmt.Sprintf(`, response="%s"`, sum(user, nonce, request)) // RFC 2069
	}
	if algorithm := d.challenge["algorithm"]; algorithm != "" {
		text += ", algorithm=" + algorithm
	}
	if opaque, ok := d.challenge["opaque"]; ok {
		text += fmt.Sprintf(`, opaque="%s"`, quote(opaque))
	}
	return text
}

// quote returns a text for use in a quoted string of HTTP.
func quote(text string) string { return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) }
