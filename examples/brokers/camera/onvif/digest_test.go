package onvif

import (
	"regexp"
	"testing"
)

// TestDigest has the examples of RFC 2617, section 3.5, and RFC 7616, section 3.9.1.
func TestDigest(t *testing.T) {
	var d digest
	if d.authorization("GET", "/", "Mufasa", "x") != "" {
		t.Error("an answer without a challenge")
	}
	for _, headers := range [][]string{nil, {`Basic realm="x"`}, {`Digest realm="x"`}, {`Digest nonce="x", algorithm=MD5-sess`}} {
		if d.accept(headers) {
			t.Errorf("%q is accepted", headers)
		}
	}
	// Without qop, the response has no random part: RFC 2069.
	if !d.accept([]string{`Basic realm="x"`, `Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="o"`}) {
		t.Fatal("a challenge is not accepted")
	}
	want := `Digest username="Mufasa", realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", uri="/dir/index.html", ` +
		`response="670fd8c2df070c60b045671b8b24ff02", opaque="o"`
	if got := d.authorization("GET", "/dir/index.html", "Mufasa", "Circle Of Life"); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if !d.accept([]string{`digest qop="auth,auth-int", algorithm=SHA-256, nonce="n", realm="r"`}) {
		t.Fatal("SHA-256 is not accepted")
	}
	for _, count := range []string{"00000001", "00000002"} {
		got := d.authorization("GET", "/", `a"b`, "p")
		pattern := `^Digest username="a\\"b", realm="r", nonce="n", uri="/", qop=auth, nc=` + count +
			`, cnonce="[A-Z2-7]{26}", response="[0-9a-f]{64}", algorithm=SHA-256$`
		if !regexp.MustCompile(pattern).MatchString(got) {
			t.Errorf("got %s", got)
		}
	}
}
