package browser

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/clustertest"
)

var update = flag.Bool("update", false, "write a screenshot to docs/images; look at it")

// maxGone bounds how long the picture of a camera that no longer answers stays on the page.
const maxGone = 3 * time.Second

// site has virtual cameras, and their brokers, on this machine's loopback.
type site struct {
	t       testing.TB
	cameras map[string]*process
	brokers map[string]*process
}

// instances are the names of Instances, which in a cluster follow from the cameras.
var instances = map[string]string{"hall": "cameras-10b0d9", "door": "cameras-2d5f61"}

func newSite(t testing.TB) *site { return &site{t, map[string]*process{}, map[string]*process{}} }

// plugIn starts a camera and its broker.
func (s *site) plugIn(name string) {
	s.t.Helper()
	credentials := []string{"CAMERA_USERNAME=viewer", "CAMERA_PASSWORD=akri"}
	s.cameras[name] = start(s.t, credentials, "devices/camera", "--name="+name, "--address=127.0.0.1", "--port=0")
	url := "ONVIF_DEVICE_SERVICE_URL=http://" + s.cameras[name].address + "/onvif/device_service"
	s.brokers[name] = start(s.t, append(credentials, url), "brokers/camera", "--listen=127.0.0.1:0")
}

// startWall starts the wall for cameras.
func (s *site) startWall(names ...string) *process {
	s.t.Helper()
	list := "CAMERAS="
	for _, name := range names {
		list += fmt.Sprintf("%s=http://%s ", instances[name], s.brokers[name].address)
	}
	return start(s.t, []string{list}, "brokers/wall", "--listen=127.0.0.1:0")
}

// replaceWall replaces the wall as a Deployment does: the new Pod is ready before the old
// one is told to end, and some connections still lead to the old one then.
func (s *site) replaceWall(service *front, old *process, names ...string) *process {
	s.t.Helper()
	next := s.startWall(names...)
	old.terminate()
	before := service.connections.Load()
	clustertest.Eventually(s.t, timeout, "another connection to the old wall", func() string {
		if service.connections.Load() == before {
			return "there is none"
		}
		return ""
	})
	service.server.Store(next.address)
	<-old.exited
	return next
}

// TestWall looks at the page of all cameras while cameras leave and come.
func TestWall(t *testing.T) {
	clustertest.Full(t)
	s := newSite(t)
	s.plugIn("hall")
	s.plugIn("door")
	wall := s.startWall("hall", "door")
	service := newFront(t, wall.address)
	page := Open(t, "http://"+service.address+"/", 900, 390)
	defer page.AssertNoErrors()
	page.AwaitPictures("door", "hall")
	page.AssertMoving()
	page.updateImage("cameras.png")

	// A camera whose cable is pulled says nothing, and answers nothing until it is back.
	s.cameras["hall"].signal(syscall.SIGSTOP)
	page.assertGone("a camera that hangs", "door")
	s.cameras["hall"].signal(syscall.SIGCONT)
	page.AwaitPictures("door", "hall")
	s.cameras["hall"].terminate()
	page.assertGone("a camera that was unplugged", "door")
	page.AssertMoving()

	// Then Akri deletes the broker, and Kubernetes replaces the wall's Pod.
	s.brokers["hall"].terminate()
	wall = s.replaceWall(service, wall, "door")
	page.AwaitPictures("door")
	s.plugIn("hall")
	s.replaceWall(service, wall, "hall", "door")
	page.AwaitPictures("door", "hall")
	page.AssertMoving()
}

// assertGone waits until only the tiles of some cameras are on the page, and fails the test
// if that takes too long.
func (p *Page) assertGone(what string, left ...string) {
	p.t.Helper()
	took := p.AwaitPictures(left...)
	p.t.Logf("%s: the tile was gone after %v", what, took.Round(time.Millisecond))
	if took > maxGone {
		p.t.Errorf("%s: the tile stayed for %v, want at most %v", what, took, maxGone)
	}
}

// TestCamera looks at the page of one camera, which leaves.
func TestCamera(t *testing.T) {
	clustertest.Full(t)
	s := newSite(t)
	s.plugIn("hall")
	page := Open(t, "http://"+s.brokers["hall"].address+"/", 700, 500)
	defer page.AssertNoErrors()
	picture := func(want int) string {
		heading := Evaluate[string](page, `document.querySelector("h1").textContent`)
		if got := len(page.pictures()); heading != "hall" || got != want {
			return fmt.Sprintf("the page of %q has %d pictures, want %d", heading, got, want)
		}
		return ""
	}
	clustertest.Eventually(t, timeout, "a picture", func() string { return picture(1) })
	page.AssertMoving()
	s.cameras["hall"].terminate()
	clustertest.Eventually(t, timeout, "no picture", func() string { return picture(0) })
	if got := Evaluate[string](page, `document.querySelector("[role=alert]").textContent`); !strings.Contains(got, "cannot be reached") {
		t.Errorf("the page says %q, want the reason", got)
	}
}

// TestErrorsAreSeen checks that the console shows what a page does wrong, so that its
// silence means something.
func TestErrorsAreSeen(t *testing.T) {
	clustertest.Full(t)
	server := http.NewServeMux()
	server.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<link rel="icon" href="data:,"><script>`+
			`console.error("said"); fetch("/missing").then(() => { document.title = "fetched"; throw new Error("thrown") })</script>`)
	})
	page := Open(t, serve(t, server), 300, 200)
	clustertest.Eventually(t, timeout, "three errors", func() string {
		if got := page.Errors(); len(got) != 3 {
			return fmt.Sprintf("%q", got)
		}
		return ""
	})
}

// maxImage bounds the size of an image in the documentation, in bytes.
const maxImage = 200 << 10

// updateImage writes a screenshot to the documentation, if the test was told to.
func (p *Page) updateImage(name string) {
	p.t.Helper()
	screenshot := p.Screenshot()
	if len(screenshot) > maxImage {
		p.t.Errorf("the screenshot has %d bytes: want at most %d", len(screenshot), maxImage)
	}
	if !*update {
		return
	}
	root, err := build.Root()
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "docs", "images", name), screenshot, 0o644)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}
