package scene

import (
	"bytes"
	"image"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 22, 12, 0, 1, 500e6, time.UTC)

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
