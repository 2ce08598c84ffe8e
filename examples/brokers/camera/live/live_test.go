package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"akri.sh/akri/examples/brokers/camera/onvif"
	"akri.sh/akri/examples/devices/camera/services"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is a camera whose answers a test sets.
type source struct {
	mu      sync.Mutex
	asked   int
	failure error
}

func (s *source) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

// pictures returns how many pictures were asked for since the last call.
func (s *source) pictures() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.asked
	s.asked = 0
	return n
}

func (s *source) Picture(context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return fmt.Appendf(nil, "picture %d", s.asked), s.failure
}

func (s *source) Information(context.Context) (onvif.Information, error) {
	return onvif.Information{Name: "hall", Manufacturer: "Akri", Model: "Virtual"}, nil
}

// TestFeed checks how often a camera is asked.
func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		feed := NewFeed(s, "http://192.0.2.1", time.Second)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- feed.Run(ctx) }()
		during := func(duration time.Duration) int {
			time.Sleep(duration)
			synctest.Wait()
			return s.pictures()
		}
		during(time.Millisecond)
		if n := during(20 * idleInterval); n != 20 {
			t.Errorf("nobody looks: %d pictures in %v", n, 20*idleInterval)
		}
		feed.Look()
		if n := during(4*time.Second + time.Millisecond); n != 5 {
			t.Errorf("somebody looks: %d pictures in 4 s, want 5: one at once", n)
		}
		s.set(errors.New("no route to host"))
		during(20 * time.Second)
		if picture, status := feed.Look(); picture != nil || status.Live || !strings.Contains(status.Problem, "no route to host") {
			t.Errorf("the camera is away: %q %+v", picture, status)
		}
		s.set(fmt.Errorf("GetProfiles: %w", onvif.ErrRefused))
		during(20 * time.Second)
		for range 60 {
			feed.Look()
			during(time.Second)
		}
		during(refusedInterval)
		s.pictures()
		if n := during(4 * refusedInterval); n != 4 {
			t.Errorf("the camera refuses: %d attempts in %v", n, 4*refusedInterval)
		}
		s.set(nil)
		during(refusedInterval)
		if picture, status := feed.Look(); picture == nil || !status.Live || status.Problem != "" || status.Name != "hall" {
			t.Errorf("the camera is back: %q %+v", picture, status)
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestFeedOfCameraThatIsUnplugged checks how soon people see that a camera is gone.
func TestFeedOfCameraThatIsUnplugged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		feed := NewFeed(s, "http://192.0.2.1", time.Second)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- feed.Run(ctx) }()
		// state looks, and returns what is there when the next attempt has ended.
		state := func() Status {
			feed.Look()
			time.Sleep(time.Second)
			synctest.Wait()
			_, status := feed.Look()
			return status
		}
		time.Sleep(time.Millisecond)
		state()

		silent := fmt.Errorf("fetch the picture: %w: connection refused", onvif.ErrSilent)
		s.set(silent)
		if got := state(); !got.Live || got.Gone || got.Problem != "" {
			t.Errorf("the camera missed a request: %+v", got)
		}
		s.set(nil)
		if got := state(); !got.Live {
			t.Errorf("the camera answers again: %+v", got)
		}
		s.set(silent)
		state()
		if got := state(); got.Live || !got.Gone || !strings.Contains(got.Problem, "cannot be reached") {
			t.Errorf("the camera missed two requests in a row: %+v", got)
		}
		s.set(errors.New("the camera answers with status 500"))
		if got := state(); got.Live || got.Gone || !strings.Contains(got.Problem, "has no picture") {
			t.Errorf("the camera answers with an error: %+v", got)
		}
		s.set(nil)
		if got := state(); !got.Live || got.Gone || got.Problem != "" {
			t.Errorf("the camera is back: %+v", got)
		}
		s.set(fmt.Errorf("GetProfiles: %w", onvif.ErrRefused))
		if got := state(); got.Live || got.Gone || !strings.Contains(got.Problem, "does not accept") {
			t.Errorf("the camera refuses: %+v", got)
		}
		stop()
		<-ended
	})
}

// TestPage looks at a virtual camera as a browser does.
func TestPage(t *testing.T) {
	identity := services.Identity{Name: "<b>hall</b>", Manufacturer: "Akri", Model: "Virtual"}
	camera := httptest.NewServer(services.New(identity, services.NewUsers("viewer", "secret", time.Now), time.Now))
	defer camera.Close()
	page := serve(t, camera.URL+services.DevicePath, "secret")

	eventually(t, func() bool { return page.status(t).Live })
	_, _, first := page.get(t, "/snapshot.jpg")
	eventually(t, func() bool {
		status, kind, next := page.get(t, "/snapshot.jpg")
		return status == http.StatusOK && kind == "image/jpeg" && !bytes.Equal(first, next)
	})
	status, kind, text := page.get(t, "/")
	if status != http.StatusOK || !strings.HasPrefix(kind, "text/html") ||
		!strings.Contains(string(text), "<h1 id=\"name\">&lt;b&gt;hall&lt;/b&gt;</h1>") {
		t.Errorf("the page is %d %s %s", status, kind, text)
	}
	for path, want := range map[string]string{
		"/page.css": "text/css", "/page.js": "text/javascript", "/icon.svg": "image/svg+xml", "/healthz": "text/plain",
	} {
		if status, kind, _ := page.get(t, path); status != http.StatusOK || !strings.HasPrefix(kind, want) {
			t.Errorf("%s is %d %s", path, status, kind)
		}
	}
	if status, _, _ := page.get(t, "/page/index.html"); status != http.StatusNotFound {
		t.Errorf("the template is served with %d", status)
	}
	camera.CloseClientConnections()
	camera.Close()
	eventually(t, func() bool { return strings.Contains(page.status(t).Problem, "cannot be reached") })
	// To a browser, an error status would be a fault of the page.
	if status, _, text = page.get(t, "/snapshot.jpg"); status != http.StatusNoContent {
		t.Errorf("without a camera: %d %s", status, text)
	}
	if _, _, text = page.get(t, "/"); strings.Contains(string(text), `src="/snapshot.jpg"`) {
		t.Errorf("without a camera, the page has a picture: %s", text)
	}
}

func TestPageWithWrongPassword(t *testing.T) {
	users := services.NewUsers("viewer", "secret", time.Now)
	camera := httptest.NewServer(services.New(services.Identity{Name: "hall"}, users, time.Now))
	defer camera.Close()
	page := serve(t, camera.URL+services.DevicePath, "guess")
	eventually(t, func() bool {
		status, _, text := page.get(t, "/")
		return status == http.StatusOK && strings.Contains(string(text), "does not accept the user name and the password")
	})
	if _, _, text := page.get(t, "/"); strings.Contains(string(text), "guess") {
		t.Errorf("the page has the password: %s", text)
	}
}

// browser reads from a broker.
type browser struct{ url string }

// serve starts a broker for a camera.
func serve(t *testing.T, camera, password string) browser {
	t.Helper()
	client, err := onvif.New(camera, "viewer", password)
	if err != nil {
		t.Fatal(err)
	}
	feed := NewFeed(client, camera, 20*time.Millisecond)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- feed.Run(ctx) }()
	server := httptest.NewServer(NewHandler(feed))
	t.Cleanup(func() {
		server.Close()
		stop()
		<-ended
		client.Close()
	})
	return browser{server.URL}
}

func (b browser) get(t *testing.T, path string) (status int, kind string, body []byte) {
	t.Helper()
	response, err := http.Get(b.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var content bytes.Buffer
	if _, err := content.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("Content-Type"), content.Bytes()
}

func (b browser) status(t *testing.T) Status {
	t.Helper()
	var status Status
	_, _, body := b.get(t, "/status.json")
	if err := json.Unmarshal(body, &status); err != nil {
		t.Fatal(err)
	}
	return status
}

// eventually waits until a condition holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timed out")
		}
	}
}
