package scene

import (
	"bytes"
	"fmt"
	"image/jpeg"
	"time"
)

// quality is that of the JPEG encoder: a picture has about 30 KB.
const quality = 80

// CommentLayout is the format of the time in a picture's comment.
const CommentLayout = time.RFC3339Nano

// JPEG returns the picture at a time. Its comment segment has the camera's name, a
// space and the time, so that a program can read what people see in the picture.
func (s *Scene) JPEG(at time.Time) ([]byte, error) {
	var encoded bytes.Buffer
	if err := jpeg.Encode(&encoded, s.Draw(at), &jpeg.Options{Quality: quality}); err != nil {
		return nil, fmt.Errorf("encode a picture: %w", err)
	}
	const startOfImage = 2 // bytes of the first marker, which all others follow
	comment := s.name + " " + at.UTC().Format(CommentLayout)
	length := len(comment) + 2
	picture := append([]byte{}, encoded.Bytes()[:startOfImage]...)
	picture = append(picture, 0xff, 0xfe, byte(length>>8), byte(length))
	picture = append(picture, comment...)
	return append(picture, encoded.Bytes()[startOfImage:]...), nil
}
