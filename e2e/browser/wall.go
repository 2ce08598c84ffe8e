package browser

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"slices"
	"time"

	"akri.sh/akri/kubebox/clustertest"
)

// timeout bounds how long a test waits for a condition. No test passes by timing out.
const timeout = 60 * time.Second

// AwaitPictures waits until the page of all cameras has tiles with pictures of exactly
// these cameras, and returns how long it took.
func (p *Page) AwaitPictures(cameras ...string) time.Duration {
	p.t.Helper()
	want := slices.Sorted(slices.Values(cameras))
	return clustertest.Eventually(p.t, timeout, "pictures on the page", func() string {
		titles := Evaluate[[]string](p, `[...document.querySelectorAll("figure strong")].map((e) => e.textContent)`)
		pictures := len(p.pictures())
		if slices.Sort(titles); slices.Equal(titles, want) && pictures == len(want) {
			return ""
		}
		return fmt.Sprintf("%d pictures in tiles of %q, want %q", pictures, titles, want)
	})
}

// AssertMoving fails the test unless each picture changes within a second of the page's
// clock.
func (p *Page) AssertMoving() {
	p.t.Helper()
	places, first := p.pictures(), p.decode(p.Screenshot())
	began := Evaluate[float64](p, "performance.now()")
	clustertest.Eventually(p.t, timeout, "a second on the page", func() string {
		if took := Evaluate[float64](p, "performance.now()") - began; took < 1000 {
			return fmt.Sprintf("it is %.0f ms later", took)
		}
		return ""
	})
	second := p.decode(p.Screenshot())
	for _, place := range places {
		if bytes.Equal(crop(first, place), crop(second, place)) {
			p.t.Errorf("the picture at %v is the same a second later", place)
		}
	}
	if len(places) == 0 {
		p.t.Error("there is no picture")
	}
}

// pictures returns where the page has pictures.
func (p *Page) pictures() []image.Rectangle {
	p.t.Helper()
	var found []image.Rectangle
	for _, r := range Evaluate[[][4]int](p, `[...document.querySelectorAll("img")]
		.filter((i) => i.checkVisibility() && i.naturalWidth > 0)
		.map((i) => i.getBoundingClientRect())
		.map((r) => [r.left, r.top, r.right, r.bottom].map(Math.round))`) {
		found = append(found, image.Rect(r[0], r[1], r[2], r[3]))
	}
	return found
}

// decode decodes a screenshot.
func (p *Page) decode(screenshot []byte) image.Image {
	p.t.Helper()
	decoded, err := png.Decode(bytes.NewReader(screenshot))
	if err != nil {
		p.t.Fatal(err)
	}
	return decoded
}

// crop returns the pixels of a part of an image.
func crop(from image.Image, part image.Rectangle) []byte {
	to := image.NewRGBA(image.Rect(0, 0, part.Dx(), part.Dy()))
	draw.Draw(to, to.Bounds(), from, part.Min, draw.Src)
	return to.Pix
}
