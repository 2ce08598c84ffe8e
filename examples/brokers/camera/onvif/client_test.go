package onvif

import (
	"bytes"
	"context"
	"errors"
	"image/jpeg"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"akri.sh/akri/examples/devices/camera/services"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// camera starts a virtual camera whose clock is wrong by an offset.
func camera(t *testing.T, offset time.Duration, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	now := func() time.Time { return time.Now().Add(offset) }
	identity := services.Identity{Name: "front hall", Manufacturer: "Akri", Model: "Virtual"}
	server := httptest.NewServer(wrap(services.New(identity, services.NewUsers("viewer", "secret", now), now)))
	t.Cleanup(server.Close)
	return server.URL + services.DevicePath
}

func unchanged(h http.Handler) http.Handler { return h }

// client returns a client, which is closed when the test ends.
func client(t *testing.T, address, username, password string) *Client {
	t.Helper()
	c, err := New(address, username, password)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestPicture(t *testing.T) {
	for name, offset := range map[string]time.Duration{
		"the right time":              0,
		"a clock that is hours late":  -7 * time.Hour,
		"a clock that is years early": 2e4 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			address := camera(t, offset, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					requests.Add(1)
					next.ServeHTTP(w, r)
				})
			})
			c := client(t, address, "viewer", "secret")
			for range 3 {
				picture, err := c.Picture(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := jpeg.Decode(bytes.NewReader(picture)); err != nil {
					t.Fatal(err)
				}
			}
			// Four for the URL, one for the challenge, three for the pictures.
			if n := requests.Load(); n != 8 {
				t.Errorf("%d requests", n)
			}
			information, err := c.Information(t.Context())
			if want := (Information{"front hall", "Akri", "Virtual"}); err != nil || information != want {
				t.Errorf("the information is %+v, %v", information, err)
			}
		})
	}
}

func TestWrongCredentials(t *testing.T) {
	address := camera(t, 0, unchanged)
	for _, c := range []*Client{client(t, address, "viewer", "public"), client(t, address, "admin", "secret"), client(t, address, "", "")} {
		_, err := c.Picture(t.Context())
		if !errors.Is(err, ErrRefused) || strings.Contains(err.Error(), "public") {
			t.Errorf("%s with %s: %v", c.username, c.password, err)
		}
	}
}

// TestUnusualChallenge checks that the client answers a challenge with unusual syntax, as some
// cameras send it: capital letters in the names of parameters, a value without quotes, a comma
// at the end, and a quality of protection that the client does not support next to one that it
// does.
func TestUnusualChallenge(t *testing.T) {
	var answer string
	address := camera(t, 0, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != services.SnapshotPath {
				next.ServeHTTP(w, r)
			} else if answer = r.Header.Get("Authorization"); answer == "" {
				demand(`digest Realm="the hall", Nonce=abc, QOP="auth-int,auth",`)(w, r)
			} else {
				say("\xff\xd8\xff")(w, r)
			}
		})
	})
	if _, err := client(t, address, "viewer", "secret").Picture(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`realm="the hall"`, `nonce="abc"`, "qop=auth,"} {
		if !strings.Contains(answer, want) {
			t.Errorf("the client answers %q, want %s in it", answer, want)
		}
	}
}

// TestHostileCameras checks that a client goes nowhere but to its camera, and that no
// answer is too much for it.
func TestHostileCameras(t *testing.T) {
	var strayed atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Store(true) }))
	defer elsewhere.Close()
	target, err := url.Parse(elsewhere.URL)
	if err != nil {
		t.Fatal(err)
	}
	foreign := "http://localhost:" + target.Port() // the camera is 127.0.0.1
	replace := func(old, with string) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				recorder := httptest.NewRecorder()
				next.ServeHTTP(recorder, r)
				maps.Copy(w.Header(), recorder.Header())
				w.Header().Del("Content-Length")
				w.WriteHeader(recorder.Code)
				_, _ = w.Write([]byte(strings.ReplaceAll(recorder.Body.String(), old, with)))
			})
		}
	}
	at := func(path string, a http.HandlerFunc) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == path {
					a(w, r)
				} else {
					next.ServeHTTP(w, r)
				}
			})
		}
	}
	for name, test := range map[string]struct {
		wrap func(http.Handler) http.Handler
		want string
	}{
		"a foreign media service": {func(next http.Handler) http.Handler {
			return at(services.DevicePath, func(w http.ResponseWriter, r *http.Request) {
				r.Host = target.Host
				recorder := httptest.NewRecorder()
				next.ServeHTTP(recorder, r)
				_, _ = w.Write(bytes.ReplaceAll(recorder.Body.Bytes(), []byte(elsewhere.URL), []byte(foreign)))
			})(next)
		}, "another host, localhost"},
		"a foreign picture":        {replace("<tt:Uri>http://127.0.0.1:", "<tt:Uri>http://localhost:"), "another host, localhost"},
		"a picture in a file":      {replace("<tt:Uri>http://", "<tt:Uri>file:///"), "not an HTTP URL"},
		"a redirect":               {at(services.SnapshotPath, http.RedirectHandler(elsewhere.URL, http.StatusFound).ServeHTTP), "status 302"},
		"an endless picture":       {at(services.SnapshotPath, endless), "more than"},
		"an endless answer":        {at(services.MediaPath, endless), "more than"},
		"Basic authentication":     {at(services.SnapshotPath, demand(`Basic realm="r"`)), ErrRefused.Error()},
		"an unknown digest":        {at(services.SnapshotPath, demand(`Digest realm="r", nonce="n", algorithm=MD4`)), ErrRefused.Error()},
		"a digest that is none":    {at(services.SnapshotPath, demand(`Digest realm="r`)), ErrRefused.Error()},
		"a page instead of a JPEG": {at(services.SnapshotPath, say("<html>")), "not a JPEG"},
		"no XML":                   {at(services.DevicePath, say("hello")), "not SOAP"},
		"no profile":               {replace("trt:Profiles", "trt:Other"), "no media profile"},
		"another fault":            {replace(`token="main"`, `token="&lt;x&gt;"`), "There is no media profile of that token"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client(t, camera(t, 0, test.wrap), "viewer", "secret").Picture(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	if strayed.Load() {
		t.Error("the client sent a request to another host")
	}
}

// demand returns a handler that demands credentials by a challenge.
func demand(challenge string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", challenge)
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// say returns a handler that answers with a text.
func say(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

// endless sends bytes until the client leaves.
func endless(w http.ResponseWriter, _ *http.Request) {
	for chunk := make([]byte, 1<<20); ; {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, err := client(t, server.URL, "viewer", "secret").Picture(t.Context())
	if err == nil || errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
	for _, address := range []string{"", "camera", "ftp://192.0.2.1/", "http://", "://"} {
		if _, err := New(address, "", ""); err == nil {
			t.Errorf("%q is accepted", address)
		}
	}
}

// TestCameraThatHangs checks that a client which lost patience asks for the same picture
// again, and does not ask for its URL first.
func TestCameraThatHangs(t *testing.T) {
	c := client(t, "http://192.0.2.1", "", "")
	known, err := url.Parse("http://192.0.2.1/picture.jpg")
	if err != nil {
		t.Fatal(err)
	}
	c.picture = known
	c.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = c.Picture(ctx)
	if !errors.Is(err, ErrSilent) || err.Error() != "fetch the picture: no answer in time" {
		t.Errorf("got %v", err)
	}
	var asked []string
	c.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.Path)
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("\xff\xd8\xff"))}, nil
	})
	if _, err := c.Picture(t.Context()); err != nil || !slices.Equal(asked, []string{"/picture.jpg"}) {
		t.Errorf("the client asked for %q: %v: want the picture", asked, err)
	}
}

// roundTrip is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
