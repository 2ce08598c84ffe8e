package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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

func TestWall(t *testing.T) {
	broker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/snapshot.jpg":
			_, _ = io.WriteString(w, "a picture")
		case "/status.json":
			http.Error(w, "broken", http.StatusTeapot)
		default:
			t.Errorf("a request for %s", r.URL)
		}
	}))
	defer broker.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	loop := httptest.NewServer(http.RedirectHandler(broker.URL+"/snapshot.jpg", http.StatusFound))
	defer loop.Close()
	large := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, maxPicture+1))
	}))
	defer large.Close()
	cameras, err := parseCameras(fmt.Sprintf("hall=%s door=%s loop=%s large=%s", broker.URL, gone.URL, loop.URL, large.URL))
	if err != nil {
		t.Fatal(err)
	}
	shown := newWall(cameras)
	defer shown.http.CloseIdleConnections()
	handler := shown.handler()
	for path, want := range map[string]struct {
		status int
		kind   string
		text   string
	}{
		"/":                           {200, "text/html", "<h1>Cameras"},
		"/page.js":                    {200, "text/javascript", "cameras.json"},
		"/page.css":                   {200, "text/css", "body"},
		"/healthz":                    {200, "", "ok"},
		"/cameras.json":               {200, "application/json", `["hall","door","loop","large"]`},
		"/cameras/hall/snapshot.jpg":  {200, "image/jpeg", "a picture"},
		"/cameras/hall/status.json":   {502, "text/plain", "The broker of hall cannot be reached: it answers with status 418"},
		"/cameras/door/snapshot.jpg":  {502, "text/plain", "connection refused"},
		"/cameras/loop/snapshot.jpg":  {502, "text/plain", "status 302"},
		"/cameras/large/snapshot.jpg": {502, "text/plain", "more than"},
		"/cameras/hall/other":         {404, "text/plain", ""},
		"/cameras/none/snapshot.jpg":  {404, "text/plain", ""},
		"/cameras/hall/..%2fother":    {404, "text/plain", ""},
	} {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		if recorder.Code != want.status || !strings.HasPrefix(recorder.Header().Get("Content-Type"), want.kind) ||
			!strings.Contains(recorder.Body.String(), want.text) {
			t.Errorf("%s: %d %s %.200s", path, recorder.Code, recorder.Header(), recorder.Body)
		}
	}
}
