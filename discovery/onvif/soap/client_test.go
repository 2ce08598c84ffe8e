package soap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"akri.sh/akri/discovery/onvif/envelope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const okEnvelope = `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope">
	<s:Body><GetThingResponse><GUID>1</GUID></GetThingResponse></s:Body></s:Envelope>`

func fault(subcode string) string {
	return `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope">
		<s:Body><s:Fault><s:Code><s:Value>s:Sender</s:Value><s:Subcode><s:Value>` +
		subcode + `</s:Value></s:Subcode></s:Code><s:Reason><s:Text>secret text</s:Text></s:Reason></s:Fault></s:Body></s:Envelope>`
}

// serve calls a server that answers with a handler.
func serve(t *testing.T, call Call, handler http.HandlerFunc) (Answer, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	client := New(Options{})
	call.URL, call.Namespace, call.Operation = server.URL+"/onvif/device_service", "urn:test", "GetThing"
	return client.Do(t.Context(), call)
}

func TestAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		status              int
		body                string
		want                string
		alive, unauthorized bool
	}{
		"an answer":              {200, okEnvelope, "", true, false},
		"a fault":                {400, fault("ter:ActionNotSupported"), "SOAP fault", true, false},
		"a fault with status OK": {200, fault("ter:ActionNotSupported"), "SOAP fault", true, false},
		"not authorized":         {400, fault("ter:NotAuthorized"), "refuses the credentials", true, true},
		"authentication failed":  {500, fault("wsse:FailedAuthentication"), "refuses the credentials", true, true},
		"a nested subcode": {500, "<Envelope><Body><Fault><Code><Subcode><Value>a</Value><Subcode><Value>NotAuthorized</Value>" +
			"</Subcode></Subcode></Code></Fault></Body></Envelope>", "refuses the credentials", true, true},
		"a reason": {500, "<Envelope><Body><Fault><Reason><Text>Sender not authorized</Text></Reason></Fault></Body></Envelope>",
			"refuses the credentials", true, true},
		"a code of SOAP 1.1": {500, "<Envelope><Body><Fault><faultcode>wsse:InvalidSecurityToken</faultcode></Fault></Body></Envelope>",
			"refuses the credentials", true, true},
		"a string of SOAP 1.1": {500, "<Envelope><Body><Fault><faultstring>Unauthorized</faultstring></Fault></Body></Envelope>",
			"refuses the credentials", true, true},
		"status 401":     {401, "", "HTTP status 401", true, true},
		"status 403":     {403, "no", "HTTP status 403", true, true},
		"status 400":     {400, "", "HTTP status 400", true, false},
		"status 404":     {404, "<html/>", "HTTP status 404", false, false},
		"another server": {200, "<html><body>Hello</body></html>", "not a SOAP envelope", false, false},
		"no XML":         {200, "OK", "not valid XML", false, false},
		"an empty body":  {200, `<s:Envelope xmlns:s="x"><s:Body/></s:Envelope>`, "not a SOAP envelope", false, false},
		"nested":         {200, strings.Repeat("<a>", 100000), "more than 32768 bytes", false, false},
		"huge":           {200, "<a>" + strings.Repeat("x", 1<<20) + "</a>", "more than 32768 bytes", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := serve(t, Call{}, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(tc.status)
				fmt.Fprint(w, tc.body)
			})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if err == nil && answer.Response.GUID != "1" {
				t.Errorf("got %+v", answer.Response)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has text of the device: %v", err)
			}
			if Alive(err) != tc.alive || Unauthorized(err) != tc.unauthorized {
				t.Errorf("alive %v, unauthorized %v; want %v, %v", Alive(err), Unauthorized(err), tc.alive, tc.unauthorized)
			}
		})
	}
}

func TestSlowAnswer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<a>")
		w.(http.Flusher).Flush()
		<-release
	}))
	defer server.Close()
	defer close(release)
	client := New(Options{})
	if _, err := client.Do(ctx, Call{URL: server.URL}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a body that never ends gives %v", err)
	}
}

// TestEndlessAnswers has a device whose answers end when the connection is closed. The first
// of many profiles is read.
func TestEndlessAnswers(t *testing.T) {
	endless := func(operation string) (Answer, error) {
		return serve(t, Call{}, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `<Envelope><Body><`+operation+`Response><Profiles token="first"/>`)
			for profiles := []byte(strings.Repeat(`<Profiles token="x"/>`, 1000)); ; {
				if _, err := w.Write(profiles); err != nil {
					return
				}
			}
		})
	}
	answer, err := endless("GetProfiles")
	if err != nil || len(answer.Response.Profiles) == 0 || answer.Response.Profiles[0].Token != "first" {
		t.Errorf("got %v, %v, want the first profile", answer.Response.Profiles, err)
	}
	if len(answer.Response.Profiles) > envelope.MaxBytes/len(`<Profiles token="x"/>`) {
		t.Errorf("%d profiles are read", len(answer.Response.Profiles))
	}
	_, err = serve(t, Call{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Long", strings.Repeat("x", 2*maxHeaderBytes))
		fmt.Fprint(w, okEnvelope)
	})
	if err == nil || Alive(err) {
		t.Errorf("a header that is too long gives %v", err)
	}
}

func TestRedirects(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	otherHost := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	for name, tc := range map[string]struct{ location, want string }{
		"to another path":    {"/other", ""},
		"to another host":    {otherHost, "another host"},
		"to a file":          {"file:///etc/passwd", "another host"},
		"to itself":          {"/onvif/device_service", "too many redirects"},
		"to nothing":         {"", "no valid URL"},
		"with user and host": {"http://user@127.0.0.1/", "another host"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t, Call{Credentials: &Credentials{"u", "p"}}, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/other" && r.Method == http.MethodPost {
					fmt.Fprint(w, okEnvelope)
					return
				}
				w.Header().Set("Location", tc.location)
				w.WriteHeader(http.StatusMovedPermanently)
			})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if elsewhere.Load() > 0 {
		t.Error("another host was called")
	}
}

func TestCheckOfAddresses(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client := New(Options{Check: func(address netip.Addr) error { return fmt.Errorf("%s is not a camera", address) }})
	for _, url := range []string{server.URL, strings.Replace(server.URL, "127.0.0.1", "localhost", 1)} {
		if _, err := client.Do(t.Context(), Call{URL: url}); err == nil || !strings.Contains(err.Error(), "is not a camera") {
			t.Errorf("%s: got %v", url, err)
		}
	}
}

func TestProxyIsIgnored(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	if _, err := serve(t, Call{}, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, okEnvelope) }); err != nil {
		t.Error(err)
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, okEnvelope) }))
	server.Config.ErrorLog = nil
	defer server.Close()
	for _, skip := range []bool{false, true} {
		client := New(Options{InsecureSkipVerify: skip})
		if _, err := client.Do(t.Context(), Call{URL: server.URL}); (err == nil) != skip {
			t.Errorf("insecureSkipVerify %v: got %v", skip, err)
		}
	}
}
