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
	// minNameDelay and maxNameDelay bound the time until a camera that did not answer is asked
	// for its name again.
	minNameDelay, maxNameDelay = refusedInterval, time.Hour
	// maxUnanswered is how many requests in a row a live camera may leave unanswered, as
	// cameras do now and then, before people see that it is gone.
	maxUnanswered = 1
	// minPatience is the least time that a live camera has for a picture. After it has been
	// unplugged without a goodbye, its picture stays for the pause between two pictures and
	// for this time once for each request.
	minPatience = time.Second
	// maxPatience is the time for a picture of a camera that is not live.
	maxPatience = 30 * time.Second
	// memory is over about how many pictures a camera's slowest answer is forgotten.
	memory = 256
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
	unanswered int           // requests in a row
	slowest    time.Duration // that a picture took; the longer ago, the less
	watched    time.Time
	told       bool          // the camera has told its name, or that it has none
	askAt      time.Time     // when to ask it for its name
	nameDelay  time.Duration // after the last time that it did not tell
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
		began := time.Now()
		err := f.fetch(ctx)
		if ctx.Err() != nil {
			break
		}
		f.wait(ctx, time.Since(began), err)
	}
	return ctx.Err()
}

// fetch gets a picture and, the first time, the camera's name.
func (f *Feed) fetch(ctx context.Context) error {
	began := time.Now()
	f.mu.Lock()
	ask, patience := !f.told && !began.Before(f.askAt), f.patience()
	f.mu.Unlock()
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	picture, err := f.camera.Picture(asking)
	took := time.Since(began)
	if err == nil && ask {
		f.recordName(f.camera.Information(asking))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before, silent := f.status.Problem, errors.Is(err, onvif.ErrSilent)
	f.unanswered++
	switch {
	case err == nil:
		f.picture, f.unanswered, f.slowest = picture, 0, max(took, f.slowest-f.slowest/memory)
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

// recordName records what the camera tells about itself. One that does not tell its name is shown
// without.
func (f *Feed) recordName(information onvif.Information, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil:
		f.nameDelay = min(max(2*f.nameDelay, minNameDelay), maxNameDelay)
		f.askAt = time.Now().Add(f.nameDelay)
		return
	case information.Name != "":
		f.status.Name, f.status.Model = information.Name, information.Manufacturer+" "+information.Model
	}
	f.told = true
}

// patience returns how long the next picture may take. A camera that answers quickly is
// missed soon; one that is slow has twice the time that it needed before, so that its
// picture does not come and go. The caller holds mu.
func (f *Feed) patience() time.Duration {
	if !f.status.Live {
		return maxPatience
	}
	return max(minPatience, 2*f.slowest)
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

// wait waits until the next picture is due: earlier if somebody begins to look. The last
// attempt took some time; if the camera was silent for it, that counts as waiting.
func (f *Feed) wait(ctx context.Context, took time.Duration, err error) {
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
	case errors.Is(err, onvif.ErrSilent):
		pause -= took
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
