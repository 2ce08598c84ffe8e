package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"akri.sh/akri/examples/brokers/camera/onvif"
)

const (
	// watchedFor is how long after a request somebody is assumed to look.
	watchedFor = 5 * time.Second
	// idleInterval is the time between two pictures while nobody looks.
	idleInterval = 5 * time.Second
	// refusedInterval is the time between two attempts with credentials that the camera
	// refuses: cameras lock users out who try too often.
	refusedInterval = 30 * time.Second
	// maxUnanswered is how many requests in a row a live camera may leave unanswered, as
	// cameras do now and then, before people see that it is gone.
	maxUnanswered = 1
)

// Camera is where the pictures come from.
type Camera interface {
	Picture(ctx context.Context) ([]byte, error)
	Information(ctx context.Context) (onvif.Information, error)
}

// Status is the state of a feed.
type Status struct {
	Name    string    `json:"name"`
	Model   string    `json:"model"`
	Live    bool      `json:"live"`
	Gone    bool      `json:"gone"`              // the camera does not answer: it may have been unplugged
	Problem string    `json:"problem,omitempty"` // why there is no picture
	Updated time.Time `json:"updated,omitzero"`
}

// Feed is the current picture of a camera. Its methods are safe for concurrent use.
type Feed struct {
	camera   Camera
	address  string // for messages
	interval time.Duration
	wake     chan struct{}

	mu         sync.Mutex
	status     Status
	picture    []byte
	unanswered int // requests in a row
	watched    time.Time
}

// NewFeed returns the feed of a camera at an address. The interval is the time between
// two pictures while somebody looks.
func NewFeed(camera Camera, address string, interval time.Duration) *Feed {
	return &Feed{
		camera: camera, address: address, interval: interval, wake: make(chan struct{}, 1),
		status: Status{Problem: "No picture yet."},
	}
}

// Run fetches pictures until ctx is done.
func (f *Feed) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := f.fetch(ctx)
		if ctx.Err() != nil {
			break
		}
		f.wait(ctx, err)
	}
	return ctx.Err()
}

// fetch gets a picture and, the first time, the camera's name.
func (f *Feed) fetch(ctx context.Context) error {
	f.mu.Lock()
	named := f.status.Name != ""
	f.mu.Unlock()
	var information onvif.Information
	picture, err := f.camera.Picture(ctx)
	if err == nil && !named {
		// A camera that does not tell its name is shown without.
		information, _ = f.camera.Information(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if information.Name != "" {
		f.status.Name, f.status.Model = information.Name, information.Manufacturer+" "+information.Model
	}
	before, silent := f.status.Problem, errors.Is(err, onvif.ErrSilent)
	f.unanswered++
	switch {
	case err == nil:
		f.picture, f.unanswered = picture, 0
		f.status.Live, f.status.Gone, f.status.Problem, f.status.Updated = true, false, "", time.Now()
	case silent && f.status.Live && f.unanswered <= maxUnanswered:
	default:
		f.picture = nil
		f.status.Live, f.status.Gone, f.status.Problem = false, silent, f.explain(err)
	}
	if f.status.Problem != before && !f.status.Live {
		slog.Warn("There is no picture", "camera", f.address, "err", err)
	} else if f.status.Problem != before {
		slog.Info("The picture is live", "camera", f.address)
	}
	return err
}

// explain returns an error as people should read it.
func (f *Feed) explain(err error) string {
	if errors.Is(err, onvif.ErrRefused) {
		return fmt.Sprintf("The camera at %s does not accept the user name and the password. Correct the Secret with its credentials.", f.address)
	}
	if errors.Is(err, onvif.ErrSilent) {
		return fmt.Sprintf("The camera at %s cannot be reached: %v", f.address, err)
	}
	return fmt.Sprintf("The camera at %s has no picture: %v", f.address, err)
}

// wait waits until the next picture is due: earlier if somebody begins to look.
func (f *Feed) wait(ctx context.Context, err error) {
	f.mu.Lock()
	pause, live := idleInterval, f.status.Live
	if time.Since(f.watched) < watchedFor {
		pause = f.interval
	}
	f.mu.Unlock()
	wake := f.wake
	switch {
	case errors.Is(err, onvif.ErrRefused):
		pause, wake = refusedInterval, nil
	case !live:
		pause, wake = max(pause, time.Second), nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-wake:
	}
}

// Look returns the current picture, or nil if there is none, and the state. It makes the
// feed fetch pictures for a while.
func (f *Feed) Look() ([]byte, Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if idle := time.Since(f.watched) > watchedFor; idle {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
	f.watched = time.Now()
	return f.picture, f.status
}
