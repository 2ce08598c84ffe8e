package handlers

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/e2e/browser"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

// TestCameras runs the example cameras, from two virtual cameras to the pages that people
// look at.
func TestCameras(t *testing.T) {
	w := newWorld(t, "onvif")
	w.loadExamples()
	w.plugInCameras()
	w.apply(w.cameraExample("cameras/credentials.yaml"))
	w.apply(w.cameraExample("cameras/configuration.yaml"))

	wall, pages := w.page("cameras-wall"), w.cameraPages("door", "hall")
	step := func(name string, run func(w *world)) {
		t.Run(name, func(t *testing.T) {
			within := *w
			within.t = t
			run(&within)
		})
	}
	step("a page shows the moving picture of its camera", func(w *world) { w.testPictures(pages) })
	step("the wall shows all cameras", func(w *world) { w.testWall(wall, pages) })
	step("a page says that the password is wrong", func(w *world) {
		clustertest.Full(w.t)
		w.testWrongPassword(pages["hall"])
	})
	step("an unplugged camera takes its objects with it", func(w *world) { w.testUnplug(wall, pages) })
	step("a camera that is plugged in again gets them back", func(w *world) {
		clustertest.Full(w.t)
		w.kubectl("scale", "deployment/camera-hall", "--replicas=1")
		// On another node it has another address, so that it is another Instance.
		again := w.cameraPages("door", "hall")
		w.awaitWall(wall, again["door"].instance, again["hall"].instance)
	})
	step("in a browser, the picture of an unplugged camera leaves the page", func(w *world) {
		clustertest.Full(w.t)
		w.testBrowser(wall)
	})
}

func (w *world) testPictures(pages map[string]cameraPage) {
	for name, p := range pages {
		first := w.picture(p.address, "/snapshot.jpg", name)
		w.eventually("another picture of "+name, func() string {
			next := w.picture(p.address, "/snapshot.jpg", name)
			if next.taken.After(first.taken) && !samePicture(first.image, next.image) {
				return ""
			}
			return fmt.Sprintf("the picture of %v is the same as that of %v", next.taken, first.taken)
		})
	}
}

func (w *world) testWall(wall string, pages map[string]cameraPage) {
	w.awaitWall(wall, pages["door"].instance, pages["hall"].instance)
	for name, p := range pages {
		w.picture(wall, "/cameras/"+p.instance+"/snapshot.jpg", name)
	}
}

func (w *world) testWrongPassword(p cameraPage) {
	w.setPassword("guess")
	w.kubectl("rollout", "restart", "deployment/"+p.instance)
	w.eventually("the reason on the page", func() string {
		_, body := w.fetch(p.address, "/")
		if strings.Contains(body, "does not accept the user name and the password") && !strings.Contains(body, "guess") {
			return ""
		}
		return body
	})
	w.setPassword("akri")
	w.kubectl("rollout", "restart", "deployment/"+p.instance)
	w.eventually("the picture", func() string { return w.complaint(p.address) })
}

func (w *world) testUnplug(wall string, pages map[string]cameraPage) {
	w.kubectl("scale", "deployment/camera-hall", "--replicas=0")
	took := w.eventually("the objects of hall are gone", func() string {
		return w.kubectl("get", "instances,deployments,services", "--ignore-not-found", "--output=name",
			"--field-selector=metadata.name="+pages["hall"].instance)
	})
	w.t.Logf("the Instance, the Deployment and the Service were gone after %v", took.Round(time.Millisecond))
	w.awaitWall(wall, pages["door"].instance)
	if complaint := w.complaint(pages["door"].address); complaint != "" {
		w.t.Errorf("the other camera: %s", complaint)
	}
}

// testBrowser watches the page of all cameras while Akri takes a camera's broker away and
// Kubernetes replaces the page's Pod.
func (w *world) testBrowser(wall string) {
	const maxGone = 3 * time.Second // from the command to the page
	page := browser.Open(w.t, "http://"+wall+"/", 900, 390)
	defer page.AssertNoErrors()
	page.AwaitPictures("door", "hall")
	page.AssertMoving()
	began := time.Now()
	w.kubectl("scale", "deployment/camera-hall", "--replicas=0")
	page.AwaitPictures("door")
	took := time.Since(began)
	w.t.Logf("the picture was gone after %v", took.Round(time.Millisecond))
	if took > maxGone {
		w.t.Errorf("the picture of a camera that was unplugged stayed for %v: want at most %v", took, maxGone)
	}
	w.awaitWall(wall, w.cameraPages("door")["door"].instance)
	w.kubectl("rollout", "status", "deployment/cameras-wall", "--timeout="+timeout.String())
	page.AwaitPictures("door")
	page.AssertMoving()
}

// cameraPage is the page of a camera.
type cameraPage struct{ instance, address string }

// cameraExample returns a file of examples/.
func (w *world) cameraExample(name string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(install.programs.Root, "examples", name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// plugInCameras starts the two virtual cameras in the test's namespace. They are gone
// when the test ends, so that no other test finds them.
func (w *world) plugInCameras() {
	w.t.Helper()
	// Their Secret has the same name and content as that of the brokers.
	_, manifests, found := strings.Cut(w.cameraExample("devices/camera.yaml"), "\n---\n") // without the namespace
	if !found {
		w.t.Fatal("examples/devices/camera.yaml has only one object")
	}
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), timeout)
		defer cancel()
		for _, name := range []string{"camera-hall", "camera-door"} {
			_, err := w.Kubectl(ctx, "--namespace", w.namespace, "delete", "deployment", name, "--cascade=foreground", "--timeout=30s")
			if err != nil {
				w.t.Error(err)
			}
		}
	})
	w.apply(strings.ReplaceAll(manifests, "namespace: devices", "namespace: "+w.namespace))
}

// cameraPages waits until the pages of these cameras are live, and returns them by the
// cameras' names.
func (w *world) cameraPages(names ...string) map[string]cameraPage {
	w.t.Helper()
	pages := map[string]cameraPage{}
	w.eventually("pages of the cameras", func() string {
		for name := range w.instances() {
			address := w.page(name)
			if complaint := w.complaint(address); complaint != "" {
				return name + ": " + complaint
			}
			var status struct{ Name string }
			_, body := w.fetch(address, "/status.json")
			if err := json.Unmarshal([]byte(body), &status); err != nil {
				return err.Error()
			}
			pages[status.Name] = cameraPage{name, address}
		}
		for _, name := range names {
			if _, ok := pages[name]; !ok {
				return fmt.Sprintf("there is no page of %s, only %v", name, pages)
			}
		}
		return ""
	})
	return pages
}

// page returns the address of a Service's port http.
func (w *world) page(service string) string {
	w.t.Helper()
	address, err := w.Forward(w.ctx, cluster.Service{Namespace: w.namespace, Name: service, Port: "http"}, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return address
}

// complaint returns why the page of a broker has no live picture, or "".
func (w *world) complaint(address string) string {
	status, body := w.fetch(address, "/status.json")
	if status == http.StatusOK && strings.Contains(body, `"live":true`) {
		return ""
	}
	return fmt.Sprint(status, " ", body)
}

// fetch returns the status and the body that a web server answers with, or 0 and the
// error.
func (w *world) fetch(address, path string) (status int, body string) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return 0, err.Error()
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(content)
}

// awaitWall waits until the wall has live pictures of exactly these cameras.
func (w *world) awaitWall(wall string, instances ...string) {
	w.t.Helper()
	want := slices.Sorted(slices.Values(instances))
	w.eventually("the cameras of the wall", func() string {
		status, body := w.fetch(wall, "/cameras.json")
		var shown []struct {
			Name string
			Live bool
		}
		if err := json.Unmarshal([]byte(body), &shown); err != nil {
			return fmt.Sprint(status, " ", err)
		}
		var got []string
		for _, each := range shown {
			if each.Live {
				got = append(got, each.Name)
			}
		}
		if len(got) == len(shown) && slices.Equal(got, want) {
			return ""
		}
		return fmt.Sprintf("%d %s, want %q", status, body, want)
	})
}

// setPassword changes the Secret with the credentials.
func (w *world) setPassword(password string) {
	w.t.Helper()
	w.kubectl("patch", "secret", "camera-credentials", "--patch", fmt.Sprintf(`{"stringData": {"password": %q}}`, password))
}

// taken is a picture of a virtual camera.
type taken struct {
	image image.Image
	taken time.Time
}

// picture fetches a picture, which must be of the camera of a name, and recent.
func (w *world) picture(address, path, name string) taken {
	w.t.Helper()
	status, body := w.fetch(address, path)
	if status != http.StatusOK {
		w.t.Fatalf("the picture of %s: %d %s", name, status, body)
	}
	decoded, err := jpeg.Decode(strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	// The second segment is a comment with the name and the time that people see in the
	// picture.
	segment := []byte(body[2:])
	if !bytes.HasPrefix(segment, []byte{0xff, 0xfe}) || len(segment) < 4 {
		w.t.Fatalf("the picture begins with % x", segment[:min(8, len(segment))])
	}
	comment := string(segment[4 : 2+binary.BigEndian.Uint16(segment[2:])])
	gotName, gotTime, _ := strings.Cut(comment, " ")
	at, err := time.Parse(time.RFC3339Nano, gotTime)
	if gotName != name || err != nil || time.Since(at).Abs() > time.Minute {
		w.t.Errorf("the picture of %s has the comment %q", name, comment)
	}
	return taken{decoded, at}
}

// samePicture reports whether two pictures have the same pixels.
func samePicture(a, b image.Image) bool {
	left, ok1 := a.(*image.YCbCr)
	right, ok2 := b.(*image.YCbCr)
	return ok1 && ok2 && bytes.Equal(left.Y, right.Y)
}
