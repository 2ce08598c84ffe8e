package scene

import (
	"bytes"
	"flag"
	"image"
	"image/jpeg"
	"os"
	"strings"
	"testing"
	"time"
)

// keep is a directory to write pictures to, for people to look at.
var keep = flag.String("keep", "", "directory to write pictures to")

var noon = time.Date(2026, 11, 22, 12, 0, 1, 500e6, time.UTC)

// TestPicture decodes pictures and reads what is printed in them.
func TestPicture(t *testing.T) {
	for name, want := range map[string]string{
		"hall":   "HALL",
		"door-2": "DOOR-2",
		"a name that is too long for the picture": "A NAME THAT IS TOO LONG",
	} {
		data, err := New(name).JPEG(noon)
		if err != nil {
			t.Fatal(err)
		}
		if *keep != "" {
			if err := os.WriteFile(*keep+"/"+name+".jpg", data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		picture, err := jpeg.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if size := picture.Bounds().Size(); size != image.Pt(Width, Height) {
			t.Errorf("%s: the size is %v", name, size)
		}
		if got := read(picture, nameCorner, nameScale, maxName); got != want {
			t.Errorf("%s: the picture has the name %q, want %q", name, got, want)
		}
		if got := read(picture, timeCorner, timeScale, len(timeLayout)); got != "2026-11-22 12:00:01.5" {
			t.Errorf("%s: the picture has the time %q", name, got)
		}
		if len(data) > 100<<10 {
			t.Errorf("%s: a picture has %d bytes", name, len(data))
		}
	}
}

// read returns the text that is printed at a point, as a person would see it.
func read(picture image.Image, corner image.Point, scale, length int) string {
	var text strings.Builder
	for i := range length {
		var seen [glyphHeight]string
		for row := range glyphHeight {
			for column := range glyphWidth {
				at := corner.Add(image.Pt((i*advance+column)*scale+scale/2, row*scale+scale/2))
				if r, _, _, _ := picture.At(at.X, at.Y).RGBA(); r > 0x7fff {
					seen[row] += "#"
				} else {
					seen[row] += " "
				}
			}
		}
		letter := '?'
		for candidate, glyph := range glyphs {
			if glyph == seen {
				letter = candidate
			}
		}
		text.WriteRune(letter)
	}
	return strings.TrimSpace(text.String())
}

func TestComment(t *testing.T) {
	data, err := New("hall").JPEG(noon)
	if err != nil {
		t.Fatal(err)
	}
	if want := "\xff\xd8\xff\xfe\x00\x1dhall 2026-11-22T12:00:01.5Z\xff"; !bytes.HasPrefix(data, []byte(want)) {
		t.Errorf("the picture begins with %q", data[:40])
	}
}

// TestMovement checks that people see a difference between moments and between cameras.
func TestMovement(t *testing.T) {
	hall := New("hall")
	now, later, other := hall.Draw(noon), hall.Draw(noon.Add(500*time.Millisecond)), New("door").Draw(noon)
	if !bytes.Equal(now.Pix, hall.Draw(noon).Pix) {
		t.Error("the same moment has two pictures")
	}
	if n := different(now, later); n < 2000 {
		t.Errorf("half a second changes only %d pixels", n)
	}
	if n := different(now, other); n < Width*Height/2 {
		t.Errorf("another camera differs in only %d pixels", n)
	}
}

func different(a, b *image.RGBA) int {
	count := 0
	for i := 0; i < len(a.Pix); i += 4 {
		if !bytes.Equal(a.Pix[i:i+3], b.Pix[i:i+3]) {
			count++
		}
	}
	return count
}

func BenchmarkJPEG(b *testing.B) {
	hall := New("hall")
	for b.Loop() {
		if _, err := hall.JPEG(noon); err != nil {
			b.Fatal(err)
		}
	}
}
