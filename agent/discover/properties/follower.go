package properties

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"akri.sh/akri/internal/backoff"
)

const (
	minRetryDelay = time.Second
	maxRetryDelay = 30 * time.Second
	// Every agent with the handler is refused until somebody grants the permission.
	minDeniedDelay = 5 * time.Second
	maxDeniedDelay = 3 * time.Minute
	// steadyAfter is how long a watch must last before failures are forgotten.
	steadyAfter = time.Minute
	// watchTimeout is when the API server ends a watch, at the earliest; twice that, at
	// the latest. Agents that started together do not renew their watches together.
	watchTimeout = 5 * time.Minute
)

// follower keeps up with one object, by a list and a watch of this object alone. An
// informer would keep a store, an index and three goroutines for it.
type follower struct {
	client   dynamic.ResourceInterface
	selector string
	keys     keySet
	// found is called with what is known about the object, whenever that changes.
	found func(lookup)
	log   *slog.Logger

	// version is the resource version up to which the object is known; empty if it must
	// be listed.
	version string
}

// run keeps up with the object until ctx is done.
func (f *follower) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; failures++ {
		started := time.Now()
		err := f.list(ctx)
		if err == nil {
			err = f.watch(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		lowest, highest := minRetryDelay, maxRetryDelay
		if denied(err) {
			lowest, highest = minDeniedDelay, maxDeniedDelay
			f.version = ""
			f.found(lookup{err: err})
		}
		if time.Since(started) >= steadyAfter {
			failures = 0
		}
		f.log.Debug("Watch interrupted", "err", err)
		delay := backoff.Delay(lowest, highest, failures)
		timer := time.NewTimer(delay - rand.N(delay/2))
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}

// denied reports whether an error concerns the object, as opposed to a watch that has
// ended or an API server that does not answer.
func denied(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

// list reads the object, unless it is known.
func (f *follower) list(ctx context.Context) error {
	if f.version != "" {
		return nil
	}
	// "0" is served from the API server's cache.
	list, err := f.client.List(ctx, metav1.ListOptions{FieldSelector: f.selector, ResourceVersion: "0"})
	if err != nil {
		return err
	}
	f.version = list.GetResourceVersion()
	if len(list.Items) == 0 {
		f.found(lookup{})
	} else {
		f.found(lookup{values: valuesOf(&list.Items[0], f.keys)})
	}
	return nil
}

// watch handles events until the watch ends.
func (f *follower) watch(ctx context.Context) error {
	watcher, err := f.client.Watch(ctx, metav1.ListOptions{
		FieldSelector: f.selector, ResourceVersion: f.version, AllowWatchBookmarks: true,
		TimeoutSeconds: new(int64((watchTimeout + rand.N(watchTimeout)).Seconds())),
	})
	if err != nil {
		return f.expired(err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Error:
			return f.expired(apierrors.FromObject(event.Object))
		case !ok:
			return fmt.Errorf("the watch returned a %T", event.Object)
		case event.Type == watch.Deleted:
			f.found(lookup{})
		case event.Type != watch.Bookmark:
			f.found(lookup{values: valuesOf(object, f.keys)})
		}
		f.version = object.GetResourceVersion()
	}
	return errors.New("the watch ended")
}

// expired forgets the version if the API server no longer knows it.
func (f *follower) expired(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) { // after a restore of etcd
		f.version = ""
	}
	return err
}
