package services

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

const (
	// maxViewers bounds the clients of the stream.
	maxViewers = 8
	// frameInterval is the time between two pictures of the stream.
	frameInterval = 200 * time.Millisecond
	// maxStream bounds how long a client may watch before it must connect again.
	maxStream = 10 * time.Minute
	boundary  = "frame"
)

// snapshot sends a picture.
func (c *camera) snapshot(w http.ResponseWriter, _ *http.Request) {
	picture, err := c.scene.JPEG(c.now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "image/jpeg")
	w.Header().Set("Content-Length", strconv.Itoa(len(picture)))
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(picture) // the client may have left
}

// stream sends pictures until the client leaves, as Motion JPEG.
func (c *camera) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case c.viewers <- struct{}{}:
		defer func() { <-c.viewers }()
	default:
		http.Error(w, "too many clients watch the stream: try again later", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary="+boundary)
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	tick := time.NewTicker(frameInterval)
	defer tick.Stop()
	for began := c.now(); c.now().Sub(began) < maxStream; {
		picture, err := c.scene.JPEG(c.now())
		if err != nil {
			return
		}
		// The server's own deadline is for requests that end.
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
		const part = "--%s\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%s\r\n"
		_, err = fmt.Fprintf(w, part, boundary, len(picture), picture)
		if err != nil || control.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// writeTimeout bounds how long a client may take to read one picture.
const writeTimeout = 10 * time.Second
