package soap

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestLargeAnswers has a device that sends large answers slowly, for many calls. They must
// not need the memory of all of them at once, and not delay small ones.
func TestLargeAnswers(t *testing.T) {
	const calls = 3 * maxLargeAnswers
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var headers sync.WaitGroup
	headers.Add(calls)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/small" {
			fmt.Fprint(w, okEnvelope)
			return
		}
		fmt.Fprint(w, "<a>"+strings.Repeat("x", 2*maxSmallBytes))
		w.(http.Flusher).Flush()
		headers.Done()
		<-r.Context().Done()
	}))
	defer server.Close()
	client := New(Options{})
	defer client.Close()
	var ended sync.WaitGroup
	for range calls {
		ended.Go(func() {
			if _, err := client.Do(ctx, Call{URL: server.URL + "/large"}); err == nil {
				t.Error("an answer without an end is accepted")
			}
		})
	}
	headers.Wait()
	for deadline := time.Now().Add(4 * time.Second); client.large.Held() < maxLargeAnswers; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d large answers are read, want %d", client.large.Held(), maxLargeAnswers)
		}
	}
	if _, err := client.Do(ctx, Call{URL: server.URL + "/small"}); err != nil {
		t.Errorf("a small answer: %v", err)
	}
	cancel()
	ended.Wait()
	if client.large.Held() != 0 {
		t.Errorf("%d places are still taken", client.large.Held())
	}
}
