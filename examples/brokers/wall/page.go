package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Bounds on what a broker may send, and on its time for that. The list waits for the state
// of all cameras, so that time is short.
const (
	maxPicture     = 8 << 20
	maxState       = 64 << 10
	pictureTimeout = 5 * time.Second
	stateTimeout   = time.Second
)

//go:embed page
var files embed.FS

// state is what the page shows of a camera.
type state struct {
	Name    string `json:"name"`
	Title   string `json:"title"` // the camera's own name, as soon as its broker has told it
	Live    bool   `json:"live"`
	Gone    bool   `json:"gone"`    // the camera or its broker does not answer: it has no tile
	Problem string `json:"problem"` // why there is no picture
}

// wall serves the page of all cameras.
type wall struct {
	cameras []camera
	http    *http.Client
	titles  sync.Map // of cameras by their names, as their brokers told them last
}

// newWall returns the handler of a page with these cameras.
func newWall(cameras []camera) *wall {
	return &wall{cameras: cameras, http: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 16 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// handler returns the page, the list of cameras, and their pictures.
func (w *wall) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /cameras.json", func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(out).Encode(w.states(r.Context())) // the client may have left
	})
	mux.HandleFunc("GET /cameras/{name}/snapshot.jpg", w.relayPicture)
	mux.HandleFunc("GET /healthz", func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write([]byte("ok\n")) })
	for path, file := range map[string][2]string{
		"/{$}":      {"index.html", "text/html; charset=utf-8"},
		"/page.css": {"page.css", "text/css; charset=utf-8"},
		"/page.js":  {"page.js", "text/javascript; charset=utf-8"},
		"/icon.svg": {"icon.svg", "image/svg+xml"},
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

// states asks the brokers of all cameras at the same time.
func (w *wall) states(ctx context.Context) []state {
	states := make([]state, len(w.cameras))
	var asking sync.WaitGroup
	for i, each := range w.cameras {
		asking.Go(func() { states[i] = w.ask(ctx, each) })
	}
	asking.Wait()
	return states
}

// ask returns the state of a camera, which its broker knows.
func (w *wall) ask(ctx context.Context, shown camera) state {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	s := state{Name: shown.Name, Title: shown.Name}
	if title, ok := w.titles.Load(shown.Name); ok {
		s.Title = title.(string)
	}
	body, err := w.fetch(ctx, shown.Broker.JoinPath("status.json"), maxState)
	if err != nil {
		s.Gone, s.Problem = true, fmt.Sprintf("The broker cannot be reached: %v", err)
		return s
	}
	var told struct {
		Name, Problem string
		Live, Gone    bool
	}
	if err := json.Unmarshal(body, &told); err != nil {
		s.Problem = fmt.Sprintf("The broker's answer is not valid: %v", err)
		return s
	}
	if told.Name != "" {
		s.Title = told.Name
		w.titles.Store(shown.Name, told.Name)
	}
	s.Live, s.Gone, s.Problem = told.Live, told.Gone, told.Problem
	return s
}

// relayPicture serves the picture of a camera. Without one, the answer has no content: to a
// browser, an error status would be a fault of the page.
func (w *wall) relayPicture(out http.ResponseWriter, r *http.Request) {
	i := slices.IndexFunc(w.cameras, func(c camera) bool { return c.Name == r.PathValue("name") })
	if i < 0 {
		out.WriteHeader(http.StatusNoContent) // it may have left since the page read the list
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), pictureTimeout)
	defer cancel()
	picture, err := w.fetch(ctx, w.cameras[i].Broker.JoinPath("snapshot.jpg"), maxPicture)
	if err != nil {
		out.WriteHeader(http.StatusNoContent)
		return
	}
	out.Header().Set("Content-Type", "image/jpeg")
	out.Header().Set("Content-Length", strconv.Itoa(len(picture)))
	_, _ = out.Write(picture) // the client may have left
}

// fetch gets a resource of at most limit bytes.
func (w *wall) fetch(ctx context.Context, address *url.URL, limit int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := w.http.Do(request)
	if err != nil {
		if failure, ok := errors.AsType[*url.Error](err); ok {
			err = failure.Err // without the URL, which means nothing to people
		}
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
