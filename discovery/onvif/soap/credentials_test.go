package soap

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery/onvif/xmltree"
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

// TestDigest uses the examples of RFC 7616, 3.9.1, and RFC 2617, 3.5, without qop.
func TestDigest(t *testing.T) {
	c := &Credentials{"Mufasa", "Circle of Life"}
	challenge := func(algorithm string) map[string]string {
		return parseParameters(`realm="http-auth@example.org", qop="auth, auth-int", algorithm=` + algorithm +
			`, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"`)
	}
	for algorithm, want := range map[string]string{
		"MD5":     "8ca523f5e9506fed4657c9700eebdbec",
		"SHA-256": "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
	} {
		header := c.digest(challenge(algorithm), algorithm, "GET", "/dir/index.html", "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
		if !strings.Contains(header, `response="`+want+`"`) || !strings.Contains(header, "algorithm="+algorithm) {
			t.Errorf("%s: got %s", algorithm, header)
		}
	}
	old := c.digest(map[string]string{"realm": "r", "nonce": "n"}, "MD5", "POST", "/", "")
	if strings.Contains(old, "qop") || !strings.Contains(old, "response=") {
		t.Errorf("without qop: got %s", old)
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
			}, "algorithm=SHA-256",
		},
		"no algorithm":       {[]string{`Basic realm="r"`, `Digest realm="r\"s", nonce="n"`}, `realm="r\"s"`},
		"a quoted user":      {[]string{`digest realm="r", nonce="n"`}, `username="us\"er"`},
		"unknown algorithm":  {[]string{`Digest realm="r", nonce="n", algorithm=MD5-sess`}, ""},
		"unknown protection": {[]string{`Digest realm="r", nonce="n", qop="auth-int"`}, ""},
		"nothing":            {nil, ""},
	} {
		got := c.authorize(tc.challenges, "POST", "/")
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
		envelope, err := xmltree.Parse(body)
		token := envelope.Find("Header", "Security", "UsernameToken")
		nonce, nonceErr := base64.StdEncoding.DecodeString(token.Value("Nonce"))
		created, timeErr := time.Parse(time.RFC3339, token.Value("Created"))
		skew := time.Now().Add(ahead).Sub(created).Abs()
		if err != nil || nonceErr != nil || timeErr != nil || len(nonce) != 16 || skew > 5*time.Second || token.Value("Username") != "<u>" ||
			token.Value("Password") != passwordDigest(nonce, token.Value("Created"), "p&") || strings.Contains(string(body), "p&") {
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
		sent := parseParameters(strings.TrimPrefix(r.Header.Get("Authorization"), "Digest "))
		want := (&Credentials{"u", "p"}).digest(map[string]string{"realm": "r", "nonce": "n", "qop": "auth"},
			"MD5", "POST", "/onvif/device_service", sent["cnonce"])
		if sent["response"] != "" && strings.Contains(want, sent["response"]) && !strings.Contains(string(body), "UsernameToken") {
			fmt.Fprint(w, okEnvelope)
			return
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
		header := (&Credentials{"user", "pass"}).authorize([]string{challenge}, "POST", "/")
		if strings.ContainsAny(header, "\r\n\x00") {
			t.Fatalf("a header with control characters: %q", header)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add(200, okEnvelope)
	f.Add(400, fault("ter:NotAuthorized"))
	f.Add(200, `<!DOCTYPE a [<!ENTITY b "bb">]><a>&b;</a>`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		answer, err := answerOf(&http.Response{StatusCode: status, Header: http.Header{}}, []byte(body))
		if (err == nil) != (answer.Response != nil) {
			t.Fatalf("got %+v, %v", answer, err)
		}
		_, _ = Alive(err), Unauthorized(err)
	})
}
