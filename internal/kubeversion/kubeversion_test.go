package kubeversion

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

func TestLacking(t *testing.T) {
	for server, want := range map[string]string{ // a part of what is said
		"v1.37.1":         "",
		"v1.36.3+k3s1":    "",
		"v1.30.0":         "older than v1.34",
		"v1.38.0-rc.1":    "newer than v1.37",
		"v1.29.14-eks-1":  "upgrade the control plane to v1.30 or later",
		"unknown":         "",
		"v2.0.0":          "",
		"v1.30.0-alpha.1": "older than v1.34",
	} {
		if _, refused := errors.AsType[*TooOldError](Check(server)); refused != strings.Contains(want, "upgrade") {
			t.Errorf("Check(%s): refused: %v", server, refused)
		}
		if got := Lacking(server); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", server, got, want)
		}
	}
}

func TestAwaitReadsTheVersionOfAnAPIServer(t *testing.T) {
	version, err := Await(t.Context(), apitest.Start(t), func(err error) { t.Error(err) })
	if err != nil || !strings.HasPrefix(version, "v1.") {
		t.Errorf("%q, %v", version, err)
	}
}

// TestAwaitRefusesOldAPIServers uses a server that answers like an API server too old to
// be built.
func TestAwaitRefusesOldAPIServers(t *testing.T) {
	answers := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers++; answers == 1 { // it is starting
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if r.URL.Path != "/prefix/version" {
			t.Errorf("requested %s", r.URL.Path)
		}
		_, _ = w.Write([]byte(`{"major": "1", "minor": "29", "gitVersion": "v1.29.3"}`))
	}))
	defer server.Close()
	failures := 0
	version, err := Await(t.Context(), &rest.Config{Host: server.URL + "/prefix"}, func(error) { failures++ })
	if _, refused := errors.AsType[*TooOldError](err); !refused || version != "v1.29.3" {
		t.Errorf("%q, %v", version, err)
	}
	if failures != 1 {
		t.Errorf("%d failures were reported, want 1", failures)
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Await(ctx, &rest.Config{Host: "http://127.0.0.1:1"}, func(error) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestChart checks that Helm refuses the same API servers.
func TestChart(t *testing.T) {
	chart, err := os.ReadFile("../../charts/akri/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("\nkubeVersion: \">=1.%d.0-0\"\n", minimum); !strings.Contains(string(chart), want) {
		t.Errorf("Chart.yaml has no line %s", want)
	}
}
