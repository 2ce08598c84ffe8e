package attacks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"akri.sh/akri/e2e/akri"
)

// api is the API server, as an administrator reaches it.
type api struct {
	server string
	http   *http.Client
}

// newAPI connects to the API server of a cluster's kubeconfig.
func newAPI(kubeconfig string) (*api, error) {
	server, client, err := akri.Connect(kubeconfig)
	if err != nil {
		return nil, err
	}
	return &api{server: server, http: client}, nil
}

// request is one request to the API server.
type request struct {
	method, path string
	query        url.Values
	contentType  string
	body         []byte
	// header impersonates a user; an administrator sends none.
	header http.Header
}

// answer is the API server's answer to a request.
type answer struct {
	code     int
	text     string
	warnings []string
	took     time.Duration
}

// send sends a request. A request without an answer has code 0.
func (a *api) send(ctx context.Context, r request) answer {
	began := time.Now()
	address := a.server + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	httpRequest, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(r.body))
	if err != nil {
		return answer{text: err.Error()}
	}
	maps.Copy(httpRequest.Header, r.header)
	if r.contentType != "" {
		httpRequest.Header.Set("Content-Type", r.contentType)
	}
	response, err := a.http.Do(httpRequest)
	if err != nil {
		return answer{text: err.Error(), took: time.Since(began)}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{text: err.Error(), took: time.Since(began)}
	}
	return answer{
		code: response.StatusCode, text: string(text), warnings: response.Header.Values("Warning"), took: time.Since(began),
	}
}

// ok reports whether the request succeeded.
func (a answer) ok() bool { return a.code >= 200 && a.code < 300 }

// refused reports whether the API server, or admission, refused the request for
// what it asks, not because something was unavailable.
func (a answer) refused() bool {
	return a.code >= 400 && a.code < 500 && a.code != http.StatusTooManyRequests
}

// contains reports whether the answer or its warnings contain a text.
func (a answer) contains(text string) bool {
	return strings.Contains(a.text, text) || strings.Contains(strings.Join(a.warnings, "\n"), text)
}

// object returns the object of the answer.
func (a answer) object() object {
	var o object
	if json.Unmarshal([]byte(a.text), &o) != nil {
		return nil
	}
	return o
}

// String returns the answer as a failed test prints it.
func (a answer) String() string {
	text := a.text
	if message := a.object().text("message"); message != "" {
		text = message
	}
	return fmt.Sprintf("%d after %v: %.1000s", a.code, a.took.Round(time.Millisecond), text)
}
