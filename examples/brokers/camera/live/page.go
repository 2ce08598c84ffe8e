package live

import (
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"strconv"
)

//go:embed page
var files embed.FS

var page = template.Must(template.ParseFS(files, "page/index.html"))

// NewHandler returns the web page of a feed: the page itself, the current picture at
// /snapshot.jpg, the state at /status.json, and /healthz. Without a picture, the answer has
// no content: to a browser, an error status would be a fault of the page.
func NewHandler(feed *Feed) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, status := feed.Look()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = page.Execute(w, status) // the client may have left
	})
	mux.HandleFunc("GET /snapshot.jpg", func(w http.ResponseWriter, _ *http.Request) {
		picture, _ := feed.Look()
		if picture == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "image/jpeg")
		w.Header().Set("Content-Length", strconv.Itoa(len(picture)))
		_, _ = w.Write(picture) // the client may have left
	})
	mux.HandleFunc("GET /status.json", func(w http.ResponseWriter, _ *http.Request) {
		_, status := feed.Look()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(status) // the client may have left
	})
	// A broker works, whether its camera does or not: it says so on its page.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	for name, kind := range map[string]string{
		"page.css": "text/css; charset=utf-8",
		"page.js":  "text/javascript; charset=utf-8",
		"icon.svg": "image/svg+xml",
	} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			http.ServeFileFS(w, r, files, "page/"+name)
		})
	}
	return secure(mux)
}

// secure adds the headers that keep a browser from doing with a picture or a page what
// they are not for.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
