package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// httpDevice is a device that speaks HTTP. As Shifu does, the twin connects to it with the
// first request, and passes requests and answers on. Unlike Shifu, it never sends the token
// of its service account to the device.
type httpDevice struct {
	base   url.URL
	client *http.Client
}

func newHTTPDevice(address string) *httpDevice {
	return &httpDevice{
		base: url.URL{Scheme: "http", Host: address},
		client: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// handler implements [device]: the answer is that of the device.
func (d *httpDevice) handler(path string) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport: d.client.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.URL.Path, r.Out.Host = d.base.Scheme, d.base.Host, path, ""
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			slog.Warn("The device does not answer", "path", path, "err", err)
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodPost, http.MethodPut:
			proxy.ServeHTTP(w, r)
		default:
			http.Error(w, "not supported yet", http.StatusBadRequest)
		}
	})
}

// check implements [device]. The device must answer with success.
func (d *httpDevice) check(ctx context.Context, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.base.JoinPath(path).String(), nil)
	if err != nil {
		return err
	}
	answer, err := d.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode < http.StatusOK || answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the device answers with status %d", answer.StatusCode)
	}
	return nil
}

// close implements [device].
func (d *httpDevice) close() { d.client.CloseIdleConnections() }
