package certs

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Path is where the webhook is served if its certificate is not managed. Otherwise a
// text that cannot be guessed follows.
const Path = "/admission/configurations"

// pathKey is the key of the path in the Secret. The path contains the time at which it
// was created, so that replicas agree on when it is replaced.
const pathKey = "path"

const (
	// pathLifetime is the age at which a path is replaced: the API server shows it
	// to users when the webhook does not respond.
	pathLifetime = time.Hour
	// pathNotice is the time between the storing of a new path and its registration.
	// Meanwhile, all replicas read it.
	pathNotice = 5 * time.Second
	// pathGrace is how long a path is served after it was replaced. Meanwhile, the
	// API servers read the new registration.
	pathGrace = time.Minute
	// pathInterval is how often a replica compares what it has read.
	pathInterval = 500 * time.Millisecond
)

// paths are the paths at which the webhook is served: the one in the Secret, the one in
// the registration, and for a while those that they replaced.
type paths struct {
	stored, registered string
	storedAt           time.Time
	retired            map[string]time.Time // until when they are served
}

// store records the path in the Secret.
func (p *paths) store(path string, now time.Time) {
	if path == p.stored {
		return
	}
	p.retire(p.stored, now)
	p.stored, p.storedAt = path, now
}

// register records the path in the registration.
func (p *paths) register(path string, now time.Time) {
	if path == p.registered {
		return
	}
	p.retire(p.registered, now)
	p.registered = path
}

func (p *paths) retire(path string, now time.Time) {
	maps.DeleteFunc(p.retired, func(_ string, until time.Time) bool { return now.After(until) })
	if path != "" {
		p.retired[path] = now.Add(pathGrace)
	}
}

// served reports whether the webhook is served at a path.
func (p *paths) served(path string, now time.Time) bool {
	known := []string{p.stored, p.registered}
	for retired, until := range p.retired {
		if now.Before(until) {
			known = append(known, retired)
		}
	}
	return slices.ContainsFunc(known, func(one string) bool {
		return unguessable(one) && subtle.ConstantTimeCompare([]byte(one), []byte(path)) == 1
	})
}

// newPath returns a path that cannot be guessed. Registrations allow lower case only.
func newPath(now time.Time) string {
	return Path + "/" + strconv.FormatInt(now.Unix(), 10) + "-" + strings.ToLower(rand.Text())
}

// createdAt returns when a path was created, or the zero time if newPath has not
// returned it.
func createdAt(path string) time.Time {
	rest, _ := strings.CutPrefix(path, Path+"/")
	seconds, random, _ := strings.Cut(rest, "-")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || len(random) < len(rand.Text()) {
		return time.Time{}
	}
	return time.Unix(unix, 0)
}

func unguessable(path string) bool { return !createdAt(path).IsZero() }

// pathOf returns the path in a registration.
func pathOf(registration *admissionregistrationv1.ValidatingWebhookConfiguration) string {
	if registration == nil || len(registration.Webhooks) == 0 {
		return ""
	}
	service := registration.Webhooks[0].ClientConfig.Service
	if service == nil || service.Path == nil {
		return ""
	}
	return *service.Path
}

// managePath creates, replaces and registers the path until ctx is done. Replicas may
// race: resourceVersions decide, and the others take over what the winner wrote.
func (s *State) managePath(ctx context.Context, api client.Client) error {
	ticker := time.NewTicker(pathInterval)
	defer ticker.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		var err error
		if changed := s.pathChange(); changed != nil {
			err = api.Update(ctx, changed, client.FieldOwner("akri-webhook"))
		}
		if apierrors.IsConflict(err) {
			err = nil // another replica was faster
		}
		if err != nil && !failed && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Failed to write the webhook's path; trying again")
		}
		failed = err != nil
	}
}

// pathChange returns the Secret or the registration as it has to be written, or nil.
func (s *State) pathChange() client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.secret == nil {
		return nil
	}
	if now.Sub(createdAt(s.paths.stored)) >= pathLifetime {
		changed := s.secret.DeepCopy()
		changed.Data[pathKey] = []byte(newPath(now))
		return changed
	}
	if s.registration == nil || s.paths.registered == s.paths.stored ||
		unguessable(s.paths.registered) && now.Sub(s.paths.storedAt) < pathNotice {
		return nil
	}
	changed := s.registration.DeepCopy()
	for i := range changed.Webhooks {
		if service := changed.Webhooks[i].ClientConfig.Service; service != nil {
			service.Path = new(s.paths.stored)
		}
	}
	return changed
}
