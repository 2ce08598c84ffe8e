package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseCameras(t *testing.T) {
	cameras, err := parseCameras(" a=http://a.default.svc b=http://192.0.2.1:8080\n")
	if err != nil || len(cameras) != 2 || cameras[1].Name != "b" || cameras[1].Broker.Host != "192.0.2.1:8080" {
		t.Errorf("got %v, %v", cameras, err)
	}
	if cameras, err := parseCameras(""); err != nil || len(cameras) != 0 {
		t.Errorf("an empty list: %v, %v", cameras, err)
	}
	var many strings.Builder
	for i := range maxCameras + 1 {
		fmt.Fprintf(&many, "c%d=http://c ", i)
	}
	for _, text := range []string{"a", "a=", "=http://a", "a=file:///etc/passwd", "a/b=http://a", "a=http://a a=http://b", many.String()} {
		if _, err := parseCameras(text); err == nil {
			t.Errorf("%.40q is accepted", text)
		}
	}
}

// broker is a broker that answers with a status and with the picture "a picture".
func broker(t *testing.T, status string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/snapshot.jpg":
			_, _ = io.WriteString(w, "a picture")
		case "/status.json":
			_, _ = io.WriteString(w, status)
		default:
			t.Errorf("a request for %s", r.URL)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// serve starts a broker with a handler.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// newTestWall returns the wall for a list of cameras.
func newTestWall(t *testing.T, list string) *wall {
	t.Helper()
	cameras, err := parseCameras(list)
	if err != nil {
		t.Fatal(err)
	}
	shown := newWall(cameras)
	t.Cleanup(shown.http.CloseIdleConnections)
	return shown
}

func get(handler http.Handler, path string) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	return recorder
}

func TestWall(t *testing.T) {
	hall := broker(t, `{"name": "hall", "live": true}`)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	loop := serve(t, http.RedirectHandler(hall+"/snapshot.jpg", http.StatusFound).ServeHTTP)
	large := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, maxPicture+1)) })
	empty := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	list := fmt.Sprintf("hall=%s door=%s loop=%s large=%s empty=%s", hall, gone.URL, loop, large, empty)
	handler := newTestWall(t, list).handler()
	for path, want := range map[string]struct {
		status int
		kind   string
		text   string
	}{
		"/":                          {200, "text/html", "<h1>Cameras"},
		"/page.js":                   {200, "text/javascript", "cameras.json"},
		"/page.css":                  {200, "text/css", "body"},
		"/icon.svg":                  {200, "image/svg+xml", "<svg"},
		"/healthz":                   {200, "", "ok"},
		"/cameras/hall/snapshot.jpg": {200, "image/jpeg", "a picture"},
		// To a browser, an error status would be a fault of the page.
		"/cameras/door/snapshot.jpg":  {204, "", ""},
		"/cameras/loop/snapshot.jpg":  {204, "", ""},
		"/cameras/large/snapshot.jpg": {204, "", ""},
		"/cameras/empty/snapshot.jpg": {204, "", ""},
		"/cameras/none/snapshot.jpg":  {204, "", ""},
		"/cameras/hall/status.json":   {404, "text/plain", ""},
		"/cameras/hall/..%2fother":    {404, "text/plain", ""},
	} {
		got := get(handler, path)
		if got.Code != want.status || !strings.HasPrefix(got.Header().Get("Content-Type"), want.kind) ||
			!strings.Contains(got.Body.String(), want.text) || want.status == 204 && got.Body.Len() > 0 {
			t.Errorf("%s: %d %s %.200s", path, got.Code, got.Header(), got.Body)
		}
	}
}

func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := map[string]string{
			"live":    `{"name": "hall", "live": true}`,
			"refused": `{"live": false, "problem": "The password is wrong."}`,
			"gone":    `{"name": "door", "gone": true, "problem": "no answer"}`,
			"broken":  `<html>`,
		}
		shown := newTestWall(t, "live=http://live refused=http://refused gone=http://gone broken=http://broken slow=http://slow")
		shown.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			answer, ok := answers[r.URL.Host]
			if !ok {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer))}, nil
		})
		began := time.Now()
		want := []state{
			{Name: "live", Title: "hall", Live: true},
			{Name: "refused", Title: "refused", Problem: "The password is wrong."},
			{Name: "gone", Title: "door", Gone: true, Problem: "no answer"},
			{Name: "broken", Title: "broken", Problem: "The broker's answer is not valid: invalid character '<' looking for beginning of value"},
			{Name: "slow", Title: "slow", Gone: true, Problem: "The broker cannot be reached: context deadline exceeded"},
		}
		if got := shown.states(t.Context()); !slices.Equal(got, want) {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
		if took := time.Since(began); took != stateTimeout {
			t.Errorf("a broker that does not answer delays the page by %v, want %v", took, stateTimeout)
		}
		delete(answers, "live")
		if got := shown.states(t.Context())[0]; got.Title != "hall" || !got.Gone {
			t.Errorf("a broker that has left: %+v, want its camera's name", got)
		}
	})
}

// roundTrip is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
