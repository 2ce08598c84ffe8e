package images

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"akri.sh/akri/release/sbom"
)

// serve runs a registry and returns its address.
func serve(t *testing.T, wrap func(http.Handler) http.Handler, options ...registry.Option) string {
	t.Helper()
	quiet := registry.Logger(log.New(io.Discard, "", 0))
	server := httptest.NewServer(wrap(registry.New(append(options, quiet)...)))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestPush(t *testing.T) {
	dir, _ := sharedImages(t)
	all, image, _ := open(t, dir, "discovery")
	digest, err := all.Digest()
	if err != nil {
		t.Fatal(err)
	}
	own, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	// A registry without the API for referrers has a tag for each subject instead.
	for kind, options := range map[string][]registry.Option{
		"with referrers": {registry.WithReferrersSupport(true)}, "without referrers": nil,
	} {
		t.Run(kind, func(t *testing.T) {
			host := serve(t, func(h http.Handler) http.Handler { return h }, options...)
			for range 2 { // the second time, everything is there
				pushed, err := Push(t.Context(), filepath.Join(dir, "discovery"), host+"/mirror/akri", "discovery", false)
				if err != nil {
					t.Fatal(err)
				}
				if want := host + "/mirror/akri/discovery:v1.2.3@" + digest.String(); pushed != want {
					t.Errorf("pushed %s, want %s", pushed, want)
				}
			}
			repository, err := name.NewRepository(host + "/mirror/akri/discovery")
			if err != nil {
				t.Fatal(err)
			}
			got, err := remote.Image(repository.Tag("v1.2.3"), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"}))
			if err != nil {
				t.Fatal(err)
			}
			if d, err := got.Digest(); err != nil || d != own {
				t.Errorf("the image for linux/amd64 is %s, want %s (%v)", d, own, err)
			}
			checkReferrers(t, repository, own, filesOf(t, image))
		})
	}
}

// checkReferrers checks that a registry lists the bills of materials of an image.
func checkReferrers(t *testing.T, repository name.Repository, digest v1.Hash, files map[string][]byte) {
	t.Helper()
	list, err := remote.Referrers(repository.Digest(digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := list.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, descriptor := range manifest.Manifests {
		referrer, err := remote.Image(repository.Digest(descriptor.Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		own, err := referrer.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		found[own.ArtifactType] = string(document(t, referrer))
	}
	if len(found) != 2 || found[sbom.SPDXType] != string(files[spdxFile]) || found[sbom.CycloneDXType] != string(files[cycloneDXFile]) {
		t.Errorf("the registry lists %d documents: %+v", len(found), manifest.Manifests)
	}
}

func TestPushUsesCredentialsOfDocker(t *testing.T) {
	dir, _ := sharedImages(t)
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user != "robot" || password != "secret" {
				w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	push := func() error {
		_, err := Push(t.Context(), filepath.Join(dir, "discovery"), host, "discovery", false)
		return err
	}
	if err := push(); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("without credentials, the error is %v", err)
	}
	config := `{"auths": {"` + host + `": {"username": "robot", "password": "secret"}}}`
	if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := push(); err != nil {
		t.Errorf("with credentials: %v", err)
	}
}

func TestPushRefuses(t *testing.T) {
	dir, _ := sharedImages(t)
	for reason, prefix := range map[string]string{"no registry": "", "a scheme": "https://registry.example.com"} {
		if _, err := Push(t.Context(), filepath.Join(dir, "agent"), prefix, "agent", false); err == nil {
			t.Errorf("%s: got no error", reason)
		}
	}
	if _, err := Push(t.Context(), t.TempDir(), "127.0.0.1:1", "agent", false); err == nil || !strings.Contains(err.Error(), "make images") {
		t.Errorf("without images, the error is %v", err)
	}
}

// errSent is what a transport returns that was reached.
var errSent = errors.New("sent")

type transport struct{}

func (transport) RoundTrip(*http.Request) (*http.Response, error) { return nil, errSent }

func TestGuard(t *testing.T) {
	for url, want := range map[string]bool{
		"https://10.0.0.1/v2/":        true,
		"http://127.0.0.1:5000/v2/":   true,
		"http://[::1]:5000/v2/":       true,
		"http://localhost:5000/v2/":   true,
		"http://10.0.0.1/v2/":         false, // the library would send it
		"http://registry.local/v2/":   false,
		"http://127.0.0.1.nip.io/v2/": false,
	} {
		request, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (guard{transport: transport{}}).RoundTrip(request); errors.Is(err, errSent) != want {
			t.Errorf("%s: sent is %v, want %v", url, !want, want)
		}
		if _, err := (guard{transport: transport{}, plainHTTP: true}).RoundTrip(request); !errors.Is(err, errSent) {
			t.Errorf("%s: not sent with --plain-http", url)
		}
	}
}
