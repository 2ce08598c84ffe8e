package soap

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/icholy/digest"
)

// TestPasswordDigest uses the example of ONVIF's Application Programmer's Guide.
func TestPasswordDigest(t *testing.T) {
	nonce, err := base64.StdEncoding.DecodeString("LKqI6G/AikKCQrN0zqZFlg==")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := passwordDigest(nonce, "2010-09-16T07:50:45Z", "userpassword"), "tuOSpGlFlIXsozq4HFNeeGeFLEI="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAuthorize(t *testing.T) {
	c := &Credentials{`us"er`, "p"}
	for name, tc := range map[string]struct {
		challenges []string
		want       string
	}{
		"Basic only": {[]string{`Basic realm="r"`}, ""},
		"the stronger": {
			[]string{
				`Digest realm="r", nonce="n", qop="auth"`,
				`Digest realm="r", nonce="n", qop="auth", algorithm=SHA-256`,
				`Digest realm="r", nonce="n", qop="auth", algorithm=MD5`,
			}, "algorithm=SHA-256",
		},
		"the one that is supported": {
			[]string{`Digest realm="r", nonce="n", qop="auth-int", algorithm=SHA-256`, `Digest realm="r", nonce="n", algorithm=MD5`},
			"algorithm=MD5",
		},
		"no algorithm":        {[]string{`Basic realm="r"`, `Digest realm="r\"s", nonce="n"`}, `realm="r\"s"`},
		"a quoted user":       {[]string{`digest realm="r", nonce="n"`}, `username="us\"er"`},
		"several protections": {[]string{`Digest realm="r", nonce="n", qop="auth-int, auth"`}, "qop=auth,"},
		"unknown protection":  {[]string{`Digest realm="r", nonce="n", qop="auth-int"`}, ""},
		"unknown algorithm":   {[]string{`Digest realm="r", nonce="n", algorithm=MD5-sess`}, ""},
		"upper case":          {[]string{`DIGEST Realm="r", Nonce="n", QOP="auth"`}, `realm="r", nonce="n"`},
		"without quotes":      {[]string{`Digest realm="r",` + "\t" + `nonce=bm9uY2U=,`}, `nonce="bm9uY2U="`},
		"two in a line":       {[]string{`Digest realm="r", nonce="n", Basic realm="s"`}, `realm="r", nonce="n"`},
		"Basic comes first":   {[]string{`Basic realm="s", Digest realm="r", nonce="n"`}, `realm="r", nonce="n"`},
		"opaque":              {[]string{`Digest realm="r", nonce="n", opaque="o"`}, `opaque="o"`},
		"a hashed user":       {[]string{`Digest realm="r", nonce="n", userhash=TRUE`}, "userhash=true"},
		"without a nonce":     {[]string{`Digest realm="r"`}, ""},
		"malformed":           {[]string{`Digest realm="r`, "Digest"}, ""},
		"nothing":             {nil, ""},
	} {
		got := c.authorize(http.Header{"Www-Authenticate": tc.challenges}, "POST", "/")
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// TestToken has a device verify the token, with a clock an hour ahead.
func TestToken(t *testing.T) {
	const ahead = time.Hour
	verify := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var envelope struct {
			Token struct{ Username, Password, Nonce, Created string } `xml:"Header>Security>UsernameToken"`
		}
		err := xml.Unmarshal(body, &envelope)
		token := envelope.Token
		nonce, nonceErr := base64.StdEncoding.DecodeString(token.Nonce)
		created, timeErr := time.Parse(time.RFC3339, token.Created)
		skew := time.Now().Add(ahead).Sub(created).Abs()
		if err != nil || nonceErr != nil || timeErr != nil || len(nonce) != 16 || skew > 5*time.Second || token.Username != "<u>" ||
			token.Password != passwordDigest(nonce, token.Created, "p&") || strings.Contains(string(body), "p&") {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, fault("ter:NotAuthorized"))
			return
		}
		fmt.Fprint(w, okEnvelope)
	}
	if _, err := serve(t, Call{Credentials: &Credentials{"<u>", "p&"}, Offset: ahead}, verify); err != nil {
		t.Error(err)
	}
	for name, call := range map[string]Call{
		"a wrong clock":    {Credentials: &Credentials{"<u>", "p&"}},
		"a wrong password": {Credentials: &Credentials{"<u>", "q"}, Offset: ahead},
		"no credentials":   {Offset: ahead},
	} {
		if _, err := serve(t, call, verify); !Unauthorized(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestDigestAfterChallenge has a device demand HTTP digest authentication.
func TestDigestAfterChallenge(t *testing.T) {
	requests := 0
	device := func(w http.ResponseWriter, r *http.Request) {
		requests++
		body, _ := io.ReadAll(r.Body)
		sum := func(text string) string { return fmt.Sprintf("%x", md5.Sum([]byte(text))) }
		sent, err := digest.ParseCredentials(r.Header.Get("Authorization"))
		if err == nil && !strings.Contains(string(body), "UsernameToken") {
			ha1, ha2 := sum("u:r:p"), sum("POST:/onvif/device_service") // RFC 7616, 3.4
			if sent.Response == sum(ha1+":n:00000001:"+sent.Cnonce+":auth:"+ha2) {
				fmt.Fprint(w, okEnvelope)
				return
			}
		}
		w.Header().Set("WWW-Authenticate", `Digest realm="r", nonce="n", qop="auth"`)
		w.WriteHeader(http.StatusUnauthorized)
	}
	if _, err := serve(t, Call{Credentials: &Credentials{"u", "p"}}, device); err != nil || requests != 2 {
		t.Errorf("got %v after %d requests", err, requests)
	}
	requests = 0
	if _, err := serve(t, Call{Credentials: &Credentials{"u", "wrong"}}, device); !Unauthorized(err) || requests != 2 {
		t.Errorf("a wrong password: got %v after %d requests", err, requests)
	}
}

func FuzzChallenge(f *testing.F) {
	f.Add(`Digest realm="r\"s", nonce="n", qop="auth,auth-int", algorithm=SHA-256, opaque=x`)
	f.Add(`Digest realm="`)
	f.Fuzz(func(t *testing.T, challenge string) {
		header := (&Credentials{"user", "pass"}).authorize(http.Header{"Www-Authenticate": {challenge}}, "POST", "/")
		if strings.ContainsAny(header, "\r\n\x00") {
			t.Fatalf("a header with control characters: %q", header)
		}
	})
}
