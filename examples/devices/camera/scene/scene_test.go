package scene

import (
	"bytes"
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
