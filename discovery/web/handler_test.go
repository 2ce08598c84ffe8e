package web

import (
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/handlertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// discover runs a handler with a short interval until the test ends.
func discover(t *testing.T, details string, properties map[string][]byte) *handlertest.Call {
	t.Helper()
	handler := Handler{Log: slog.New(slog.DiscardHandler), maxSecondScan: 2 * time.Second}
	return handlertest.Open(t, handler, discovery.Request{Details: details, Properties: properties})
}

func ids(devices []discovery.Device) string { return strings.Join(handlertest.IDs(devices), " ") }

// site is a web server whose responses a test chooses by path.
type site struct {
	*httptest.Server
	serve atomic.Pointer[http.HandlerFunc]
}

func newSite(t *testing.T, handler http.HandlerFunc) *site {
	s := &site{}
	s.set(handler)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.serve.Load())(w, r) }))
	t.Cleanup(s.Close)
	return s
}

func (s *site) set(handler http.HandlerFunc) { s.serve.Store(&handler) }

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func body(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, content) }
}

func TestADeviceExistsWhileItResponds(t *testing.T) {
	device := newSite(t, body(`{"state": "ready", "info": {"model": "X1"}}`))
	d := discover(t, fmt.Sprintf(`{urls: [%s/], intervalSeconds: 1, misses: 2, properties: {MODEL: info.model},
		expect: {path: state, values: [ready]}}`, device.URL), nil)
	first := d.Next()
	if ids(first) != device.URL+"/" || first[0].Properties["MODEL"] != "X1" || first[0].Properties["HTTP_URL"] != device.URL+"/" ||
		first[0].Properties["AKRI_HTTP_DEVICE_ENDPOINT"] != device.URL+"/" {
		t.Fatalf("found %+v", first)
	}
	device.set(body(`{"state": "ready", "info": {"model": "X2"}}`))
	if changed := d.Next(); changed[0].Properties["MODEL"] != "X2" {
		t.Fatalf("changed to %+v", changed)
	}
	device.set(body(`{"state": "off"}`))
	if devices := d.Next(); len(devices) != 0 {
		t.Fatalf("still there: %+v", devices)
	}
	device.set(body(`{"state": "ready"}`))
	if devices := d.Next(); len(devices) != 1 || devices[0].Properties["MODEL"] != "" {
		t.Fatalf("back as %+v", devices)
	}
}

// TestFailuresAfterAStart checks that the first list waits for no device that fails, and that
// such a device is found soon after it, however long the interval is.
func TestFailuresAfterAStart(t *testing.T) {
	for name, fail := range map[string]http.HandlerFunc{
		"a response is lost":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, // closes the connection
		"a response is wrong": status(http.StatusBadGateway),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var good, bad atomic.Int32
			healthy := newSite(t, func(http.ResponseWriter, *http.Request) { good.Add(1) })
			failing := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				if bad.Add(1) == 1 {
					fail(w, r)
				}
			})
			d := discover(t, fmt.Sprintf("{urls: [%s, %s], intervalSeconds: 3600}", healthy.URL, failing.URL), nil)
			if got := ids(d.Next()); got != healthy.URL || bad.Load() != 1 {
				t.Errorf("the first list has %q after %d requests", got, bad.Load())
			}
			if devices := d.Next(); len(devices) != 2 || bad.Load() != 2 || good.Load() != 2 {
				t.Errorf("found %+v after %d and %d requests, want both devices after two", devices, good.Load(), bad.Load())
			}
		})
	}
}

// TestResponses checks which responses make a device; the first list is sent even without any.
func TestResponses(t *testing.T) {
	large := body(strings.Repeat("<p>", int(deviceKind.maxBytes)))
	for name, tc := range map[string]struct {
		answer  http.HandlerFunc
		details string
		want    int
	}{
		"an error":                                {status(http.StatusNotFound), "", 0},
		"a status that is expected":               {status(http.StatusNotFound), "expect: {status: [404]}", 1},
		"a value that is an object":               {body(`{"a": {"b": 1}}`), "expect: {path: a}", 1},
		"a value that is null":                    {body(`{"a": null}`), "expect: {path: a}", 1},
		"no value":                                {body(`{"b": 1}`), "expect: {path: a}", 0},
		"a large page of which nothing is needed": {large, "", 1},
		"a large page for a property":             {large, "properties: {A: a}", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if found := discover(t, "urls: ["+newSite(t, tc.answer).URL+"]\n"+tc.details, nil).Next(); len(found) != tc.want {
				t.Errorf("found %d devices, want %d", len(found), tc.want)
			}
		})
	}
}

func TestIndexes(t *testing.T) {
	for name, tc := range map[string]struct{ keys, response, want string }{
		"lines":   {"", "http://a/\n\n http://b/1 \r\nnot a URL\nhttp://a/\n", "http://a/ http://b/1"},
		"nothing": {"", "", ""},
		"a list":  {"", `["http://a/", 7, "ftp://x/", "http://b/"]`, "http://a/ http://b/"},
		"objects": {"items: data.list, address: url", `{"data": {"list": [{"url": "http://a/"}, {"uri": "http://b/"}]}}`, "http://a/"},
		"objects with id": {
			"items: list, address: url, id: nr", `{"list": [{"url": "http://a/", "nr": 1}, {"url": "http://a/", "nr": "2"}]}`, "1 2",
		},
		"an empty list": {"items: list", `{"list": []}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			index := newSite(t, body(tc.response))
			d := discover(t, fmt.Sprintf("index: {url: %s, %s}", index.URL, tc.keys), nil)
			if got := ids(d.Next()); got != tc.want {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}

func TestADeviceLeavesTheIndex(t *testing.T) {
	index := newSite(t, body("http://a/\nhttp://b/"))
	d := discover(t, "index: {url: "+index.URL+"}\nintervalSeconds: 1", nil)
	if got := ids(d.Next()); got != "http://a/ http://b/" {
		t.Fatalf("found %q", got)
	}
	index.set(body("http://b/"))
	if got := ids(d.Next()); got != "http://b/" {
		t.Fatalf("found %q", got)
	}
	index.set(status(http.StatusInternalServerError))
	if err := d.Err(); !strings.Contains(err.Error(), "unexpected status 500") || !strings.Contains(err.Error(), index.URL) {
		t.Errorf("ended by %v", err)
	}
	d.Quiet()
}

func TestRefusals(t *testing.T) {
	huge := newSite(t, body("\""+strings.Repeat("x", int(indexKind.maxBytes))+"\""))
	deep := newSite(t, body(strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)))
	redirect := newSite(t, http.RedirectHandler(huge.URL, http.StatusFound).ServeHTTP)
	for name, tc := range map[string]struct{ details, want string }{
		"a huge index":       {"index: {url: " + huge.URL + "}", "too large"},
		"a deep index":       {"index: {url: " + deep.URL + "}", "not JSON"},
		"a redirect":         {"index: {url: " + redirect.URL + "}", "unexpected status 302"},
		"no list":            {"index: {url: " + huge.URL + "x, items: a}", ""},
		"not YAML":           {"urls: [", "not valid YAML"},
		"an absent CA":       {"urls: [https://a/]\ntls: {caProperty: ca}", "tls.caProperty: there is no discoveryProperty ca"},
		"an invalid CA":      {"urls: [https://a/]\ntls: {caProperty: password}", "has no PEM certificate"},
		"an invalid cert":    {"urls: [https://a/]\ntls: {certProperty: password, keyProperty: password}", "not a certificate"},
		"two ways to log in": {"urls: [https://a/]", "both token and username"},
	} {
		t.Run(name, func(t *testing.T) {
			properties := map[string][]byte{"password": []byte("s3cret")}
			if strings.HasPrefix(name, "two") {
				properties["token"], properties["username"] = []byte("s3cret"), []byte("u")
			}
			err := discover(t, tc.details, properties).Err()
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("ended by %v, want %q", err, tc.want)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	seen := make(chan string, 100)
	record := func(name string, next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			seen <- name + ":" + user + ":" + password
			next(w, r)
		}
	}
	other := newSite(t, record("other", body("{}")))
	var index *site
	index = newSite(t, func(w http.ResponseWriter, r *http.Request) {
		record("index", body(other.URL+"/\n"+index.URL+"/device"))(w, r)
	})
	d := discover(t, "index: {url: "+index.URL+"}\nexpect: {status: [200]}",
		map[string][]byte{"username": []byte("u"), "password": []byte("p")})
	if devices := d.Next(); len(devices) != 2 {
		t.Fatalf("found %+v", devices)
	}
	var all []string
	for range 3 {
		all = append(all, <-seen)
	}
	slices.Sort(all)
	if want := []string{"index:u:p", "index:u:p", "other::"}; !slices.Equal(all, want) {
		t.Errorf("sent %q, want %q", all, want)
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(body("ok"))
	defer server.Close()
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, tc := range map[string]struct {
		tls  string
		want int
	}{
		"an unknown CA": {"", 0}, "a known CA": {"tls: {caProperty: ca}", 1}, "any certificate": {"tls: {insecureSkipVerify: true}", 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := discover(t, "urls: ["+server.URL+"]\n"+tc.tls, map[string][]byte{"ca": ca})
			if devices := d.Next(); len(devices) != tc.want {
				t.Errorf("found %+v, want %d devices", devices, tc.want)
			}
		})
	}
}
