package properties

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

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
	// readTimeout bounds the time for which one object keeps others waiting.
	readTimeout = 10 * time.Second
	// minReadInterval is the time between two reads of an object that changes all the time.
	minReadInterval = time.Second
	// maxBookmark bounds the length of a bookmark in bytes. A longer event is a change.
	maxBookmark = 4 << 10
)

// errChanged ends a watch whose object has changed.
var errChanged = errors.New("the object has changed")

// follower keeps up with one object, by a list and a watch of this object alone. An
// informer would keep a store, an index and three goroutines for it.
//
// Users who may write the object choose how much memory it takes to decode: a ConfigMap
// with many short keys takes ten times its size. Therefore only the list has the object,
// and followers list one at a time. The watch reports as rows of a table that the object
// has changed. It then ends, because what nobody reads of it would be buffered.
type follower struct {
	client   rest.Interface
	ref      reference
	selector string
	keys     keySet
	// turn, of capacity 1, is taken by the follower that reads its object.
	turn chan struct{}
	// found is called with what is known about the object, whenever that changes.
	found func(lookup)
	log   *slog.Logger

	// version is the resource version up to which the object is known; empty if nothing
	// is. changed means that the object must be read again.
	version string
	changed bool
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
		if errors.Is(err, errChanged) {
			failures = -1
			backoff.Sleep(ctx, time.Until(started.Add(minReadInterval)))
			continue
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
		backoff.Sleep(ctx, delay-rand.N(delay/2))
	}
}

// denied reports whether an error concerns the object, as opposed to a watch that has
// ended or an API server that does not answer.
func denied(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

// list reads the object, unless it is known.
func (f *follower) list(ctx context.Context) error {
	if f.version != "" && !f.changed {
		return nil
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	// "0" is served from the API server's cache.
	result := f.get(cmp.Or(f.version, "0")).Do(ctx)
	if err := result.Error(); err != nil {
		return f.expired(err)
	}
	answer, err := result.Raw()
	if err != nil {
		return err
	}
	var list struct {
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []objectData    `json:"items"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return fmt.Errorf("decode %s", f.ref) // not what is wrong: it may quote a value
	}
	f.version, f.changed = list.Metadata.ResourceVersion, false
	if len(list.Items) == 0 {
		f.found(lookup{})
	} else {
		f.found(lookup{values: list.Items[0].values(f.ref.kind, f.keys)})
	}
	return nil
}

// watch waits until the object changes, and then returns errChanged.
func (f *follower) watch(ctx context.Context) error {
	seconds := int64((watchTimeout + rand.N(watchTimeout)).Seconds())
	stream, err := f.get(f.version).
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").
		Param("includeObject", string(metav1.IncludeNone)).
		Param("watch", "true").
		Param("allowWatchBookmarks", "true").
		Param("timeoutSeconds", strconv.FormatInt(seconds, 10)).
		Stream(ctx)
	if err != nil {
		return f.expired(err)
	}
	defer stream.Close()
	events := bufio.NewReaderSize(stream, maxBookmark) // an event is a line
	for {
		line, err := events.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("the watch ended: %w", err)
		}
		var event struct {
			Type   watch.EventType `json:"type"`
			Object metav1.Status   `json:"object"` // or a table, whose version is at the same place
		}
		complete := json.Unmarshal(line, &event) == nil
		switch {
		case complete && event.Type == watch.Error:
			return f.expired(apierrors.FromObject(&event.Object))
		case complete && event.Object.ResourceVersion != "":
			f.version = event.Object.ResourceVersion
		}
		if event.Type != watch.Bookmark {
			f.changed = true
			return errChanged
		}
	}
}

// get returns a request for the object, as a list.
func (f *follower) get(version string) *rest.Request {
	return f.client.Get().Namespace(f.ref.Namespace).Resource(resources[f.ref.kind]).
		Param("fieldSelector", f.selector).Param("resourceVersion", version).
		MaxRetries(0) // run retries, without keeping others waiting
}

// expired forgets the version if the API server no longer knows it.
func (f *follower) expired(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) { // after a restore of etcd
		f.version = ""
	}
	return err
}
