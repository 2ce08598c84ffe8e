package opcua

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"akri.sh/akri/discovery/internal/budget"
	"akri.sh/akri/discovery/opcua/uatcp"
)

// TestReportsOfManyRequests checks that what hostile discovery servers report to many
// Configurations, and what servers say about themselves, leaves memory for those of others.
func TestReportsOfManyRequests(t *testing.T) {
	const limit = 40 << 20
	shared, handler := budget.New(24<<20), New(Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var group, recorded sync.WaitGroup
	defer group.Wait()
	defer cancel()
	var refused atomic.Int32
	request := func(name string, count int) {
		recorded.Add(1)
		group.Go(func() {
			err := shared.Run(ctx, func(ctx context.Context) error {
				s := newSearch(ctx, handler, parse(t, `opcuaDiscoveryMethod: {standard: {discoveryUrls: ["opc.tcp://plc"]}}`))
				for i := 0; i < count && ctx.Err() == nil; i++ {
					s.report(ctx, i)
				}
				recorded.Done()
				<-ctx.Done()
				runtime.KeepAlive(s)
				return ctx.Err()
			})
			if errors.As(err, new(*budget.ExceededError)) {
				refused.Add(1)
				if name == "modest" {
					t.Errorf("the modest request: %v", err)
				}
			}
		})
	}
	request("modest", 20)
	recorded.Wait()
	for range 30 {
		request("hostile", 1000)
	}
	recorded.Wait()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if stats.HeapAlloc > limit || refused.Load() < 5 {
		t.Errorf("%d MiB are in use, the limit is %d MiB; %d requests were refused", stats.HeapAlloc>>20, limit>>20, refused.Load())
	}
	t.Logf("%d MiB; %d requests were refused", stats.HeapAlloc>>20, refused.Load())
}

// report records the answer of another target, with one server, and its description.
func (s *search) report(ctx context.Context, i int) {
	long := strings.Repeat("x", maxTextBytes-10)
	server := uatcp.Application{
		URI: fmt.Sprint("a", i, long), Name: fmt.Sprint("b", i, long), ProductURI: fmt.Sprint("c", i, long),
	}
	a := application{url: fmt.Sprint("opc.tcp://plc/", i)}
	a.describe(server)
	s.record(polledTarget{text: a.url}, targetAnswer{found: []application{a}}, nil)
	s.descriptions.get(ctx, a.url, func(context.Context) (description, error) { return description{server: server}, nil })
	s.names.known.remember(a.url, nameAnswer{until: time.Now()})
}
