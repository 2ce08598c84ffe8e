package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Bounds on what a broker may send.
const (
	maxPicture    = 8 << 20
	maxStatus     = 64 << 10
	brokerTimeout = 5 * time.Second
)

//go:embed page
var files embed.FS

// resources are what the page reads from each broker.
var resources = map[string]struct {
	kind  string
	limit int64
}{
	"snapshot.jpg": {"image/jpeg", maxPicture},
	"status.json":  {"application/json", maxStatus},
}

// wall serves the page of all cameras.
type wall struct {
	cameras map[string]camera
	names   []string
	http    *http.Client
}

// newWall returns the handler of a page with these cameras.
func newWall(cameras []camera) *wall {
	w := &wall{cameras: map[string]camera{}, names: []string{}, http: &http.Client{
		Timeout:       brokerTimeout,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 16 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for _, each := range cameras {
		w.cameras[each.Name] = each
		w.names = append(w.names, each.Name)
	}
	return w
}

// handler returns the page, the list of cameras, and what the brokers serve.
func (w *wall) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /cameras.json", func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(out).Encode(w.names) // the client may have left
	})
	mux.HandleFunc("GET /cameras/{name}/{resource}", w.relay)
	mux.HandleFunc("GET /healthz", func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write([]byte("ok\n")) })
	for path, file := range map[string][2]string{
		"/{$}":      {"index.html", "text/html; charset=utf-8"},
		"/page.css": {"page.css", "text/css; charset=utf-8"},
		"/page.js":  {"page.js", "text/javascript; charset=utf-8"},
	} {
		mux.HandleFunc("GET "+path, func(out http.ResponseWriter, _ *http.Request) {
			content, err := files.ReadFile("page/" + file[0])
			if err != nil {
				http.Error(out, err.Error(), http.StatusInternalServerError)
				return
			}
			out.Header().Set("Content-Type", file[1])
			_, _ = out.Write(content) // the client may have left
		})
	}
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'")
		out.Header().Set("X-Content-Type-Options", "nosniff")
		out.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(out, r)
	})
}

// relay fetches a resource from the broker of a camera.
func (w *wall) relay(out http.ResponseWriter, r *http.Request) {
	shown, ok := w.cameras[r.PathValue("name")]
	resource, known := resources[r.PathValue("resource")]
	if !ok || !known {
		http.NotFound(out, r)
		return
	}
	body, err := w.fetch(r.Context(), shown.Broker.JoinPath(r.PathValue("resource")).String(), resource.limit)
	if err != nil {
		http.Error(out, fmt.Sprintf("The broker of %s cannot be reached: %v", shown.Name, err), http.StatusBadGateway)
		return
	}
	out.Header().Set("Content-Type", resource.kind)
	out.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = out.Write(body) // the client may have left
}

// fetch gets a resource of at most limit bytes.
func (w *wall) fetch(ctx context.Context, address string, limit int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := w.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("it answers with status %d", response.StatusCode)
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("its answer has more than %d bytes", limit)
	}
	return body, nil
}
