package kubeversion

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

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

// recorded returns a logger, and what it has logged.
func recorded() (*slog.Logger, *strings.Builder) {
	var lines strings.Builder
	return slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug})), &lines
}

func TestVerifyReadsTheVersionOfAnAPIServer(t *testing.T) {
	log, lines := recorded()
	if err := Verify(t.Context(), apitest.Start(t), log); err != nil || !strings.Contains(lines.String(), "version=v1.") {
		t.Errorf("%v, logged %s", err, lines)
	}
}

// The servers answer like API servers that are starting, and some are too old to be built.
func TestVerify(t *testing.T) {
	for version, want := range map[string]string{ // what is logged of the version
		"v1.29.3": "",
		"v1.31.4": `because="Kubernetes v1.31.4 is older than v1.34, the oldest that Akri has been tested with" see=` + page,
		"v1.36.3": "",
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			answers := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if answers++; answers == 1 {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				if r.URL.Path != "/prefix/version" {
					t.Errorf("requested %s", r.URL.Path)
				}
				_, _ = fmt.Fprintf(w, `{"gitVersion": %q}`, version)
			}))
			defer server.Close()
			log, lines := recorded()
			err := Verify(t.Context(), &rest.Config{Host: server.URL + "/prefix"}, log)
			if _, refused := errors.AsType[*TooOldError](err); refused != (version == "v1.29.3") || err != nil && !refused {
				t.Error(err)
			}
			got := lines.String()
			if strings.Count(got, "because=") != min(1, len(want)) || !strings.Contains(got, want) || strings.Count(got, "not known yet") != 1 {
				t.Errorf("logged\n%s\nwant %q once, and one failure", got, want)
			}
		})
	}
}

func TestVerifyEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	log, _ := recorded()
	if err := Verify(ctx, &rest.Config{Host: "http://127.0.0.1:1"}, log); err != nil {
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
