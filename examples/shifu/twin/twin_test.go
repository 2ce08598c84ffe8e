package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/yaml"
)

// exampleConfig returns the ConfigMap that an example renders.
func exampleConfig(t *testing.T, example string) fstest.MapFS {
	t.Helper()
	text, err := os.ReadFile("../" + example + "/expected.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var object struct {
			Kind string            `json:"kind"`
			Data map[string]string `json:"data"`
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		if object.Kind == "ConfigMap" {
			files := fstest.MapFS{}
			for name, content := range object.Data {
				files[name] = &fstest.MapFile{Data: []byte(content)}
			}
			return files
		}
	}
	t.Fatal("the example has no ConfigMap")
	return nil
}

// TestHTTPDevice runs the example http: the twin passes requests and answers on, and keeps
// its own credentials to itself.
func TestHTTPDevice(t *testing.T) {
	c, err := readConfig(exampleConfig(t, "http"), protocolHTTP)
	if err != nil {
		t.Fatal(err)
	}
	works := true
	sensor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("the device received %q", r.Header["Authorization"])
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/x-sensor")
		if !works {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = io.WriteString(w, r.Method+" "+r.URL.RequestURI()+" "+string(body))
	}))
	defer sensor.Close()
	shown, err := connect(t.Context(), deviceSpec{Protocol: protocolHTTP, Address: strings.TrimPrefix(sensor.URL, "http://")})
	if err != nil {
		t.Fatal(err)
	}
	defer shown.close()
	pages := httptest.NewServer(routes(c, shown))
	defer pages.Close()
	ask := func(method, path, body string) string {
		request, err := http.NewRequestWithContext(t.Context(), method, pages.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.Status[:3] + " " + answer.Header.Get("Content-Type") + " " + strings.TrimSpace(string(text))
	}
	const plain = "text/plain; charset=utf-8 "
	for request, want := range map[[3]string]string{
		{"GET", "/status", ""}:               "200 text/x-sensor GET /status",
		{"GET", "/temperature?unit=K", ""}:   "200 text/x-sensor GET /temperature?unit=K",
		{"PUT", "/temperature", "21"}:        "200 text/x-sensor PUT /temperature 21",
		{"DELETE", "/temperature", ""}:       "400 " + plain + "not supported yet",
		{"GET", "/humidity", ""}:             "404 " + plain + "404 page not found",
		{"GET", "/temperature/../other", ""}: "404 " + plain + "404 page not found",
		{"GET", "/health", ""}:               "200 " + plain + "Device is healthy",
	} {
		if got := ask(request[0], request[1], request[2]); got != want {
			t.Errorf("%s: got %q, want %q", request, got, want)
		}
	}
	if err := shown.check(t.Context(), "/status"); err != nil {
		t.Errorf("the device works: %v", err)
	}
	works = false
	if got := ask("GET", "/status", ""); got != "418 text/x-sensor GET /status" {
		t.Errorf("a device that does not work: %q", got)
	}
	if err := shown.check(t.Context(), "/status"); err == nil || !strings.Contains(err.Error(), "status 418") {
		t.Errorf("a device that does not work: %v", err)
	}
	sensor.Close()
	if got := ask("GET", "/status", ""); !strings.HasPrefix(got, "503 ") {
		t.Errorf("a device that is gone: %q", got)
	}
	if err := shown.check(t.Context(), "/status"); err == nil {
		t.Error("a device that is gone passes the check")
	}
}

// TestEdgeDevice checks that the twin changes nothing but the phase.
func TestEdgeDevice(t *testing.T) {
	stored := `{"kind":"EdgeDevice","metadata":{"resourceVersion":"7"},"spec":{"address":"opc.tcp://a","protocol":"OPCUA","sku":"x"}}`
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodPut {
			body, _ := io.ReadAll(r.Body)
			stored = string(body)
		}
		_, _ = io.WriteString(w, stored)
	}))
	defer api.Close()
	e := &edgeDevice{url: api.URL, client: api.Client(), token: func() (string, error) { return "secret", nil }}
	s, err := e.spec(t.Context())
	if err != nil || s.Address != "opc.tcp://a" {
		t.Errorf("got %+v, %v", s, err)
	}
	if err := e.setPhase(t.Context(), "Running"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"resourceVersion":"7"`, `"sku":"x"`, `"edgedevicephase":"Running"`} {
		if !strings.Contains(stored, want) {
			t.Errorf("the EdgeDevice has no %s: %s", want, stored)
		}
	}
	if _, err := connect(t.Context(), s); err == nil || !strings.Contains(err.Error(), "AuthenticationMode") {
		t.Errorf("without AuthenticationMode: %v", err)
	}
}
