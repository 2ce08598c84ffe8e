package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/fulltest"
)

// floodedReview returns the request of a user to create a Configuration with some templates.
func floodedReview(t *testing.T, w *world, user string, templates int, value string) admissionRequest {
	t.Helper()
	list := make([]string, templates)
	for i := range list {
		list[i] = fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}-%d"}, data: {k: "%s"}}`, i, value)
	}
	raw, err := json.Marshal(decode(t, configuration(strings.Join(list, ","), "")).Object)
	if err != nil {
		t.Fatal(err)
	}
	r := admissionRequest{user: userInfo(user), configuration: &v0.Configuration{}}
	if err := json.Unmarshal(raw, r.configuration); err != nil {
		t.Fatal(err)
	}
	r.configuration.Namespace, r.configuration.Name = w.Namespace, user
	return r
}

// maxFloodedRatio is far above what was measured: up to 6, and up to 35 while reviews took
// as many processors as there are.
const maxFloodedRatio = 12

// While one user has as many expensive reviews as one user may have, on two processors,
// another user's review takes a bounded multiple of what it takes alone.
func TestFloodOfExpensiveReviews(t *testing.T) {
	fulltest.Only(t)
	for name, value := range map[string]string{
		"loops":               `{{ range until 1000 }}{{ range until 1000 }}x{{ end }}{{ end }}`,
		"regular expressions": `{{ regexReplaceAll \"(a|aa)+b?\" (repeat 20000 \"a\") \"x\" }}`,
		"errors":              "{{ nothing " + strings.Repeat("x", 4000),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, user := range []string{"mallory", "ann"} {
				w.grant(user, configurations, rule("", "configmaps", everyVerb...))
			}
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
			chain, err := NewChain(w.options)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			modest, hostile := floodedReview(t, w, "ann", 1, "x"), floodedReview(t, w, "mallory", 64, value)
			ann := func() time.Duration {
				began := time.Now()
				if findings := chain.review(t.Context(), modest); denied(findings) {
					t.Errorf("ann's review: %v", findings)
				}
				return time.Since(began)
			}
			median := func(count int) time.Duration {
				var took []time.Duration
				for range count {
					took = append(took, ann())
				}
				slices.Sort(took)
				return took[count/2]
			}
			ann()
			alone := median(7)
			var group sync.WaitGroup
			for range floodSize {
				group.Go(func() {
					for ctx.Err() == nil {
						deadline, cancel := context.WithTimeout(ctx, defaultTimeout)
						chain.review(deadline, hostile)
						cancel()
					}
				})
			}
			w.Eventually("mallory's reviews wait for a processor", func() string {
				chain.processors.mu.Lock()
				defer chain.processors.mu.Unlock()
				if len(chain.processors.waiting) == 0 {
					return "none waits"
				}
				return ""
			})
			flooded := median(7)
			cancel()
			group.Wait()
			t.Logf("ann's review takes %v alone, and %v in the flood: %.1f times", alone, flooded, float64(flooded)/float64(alone))
			if flooded > maxFloodedRatio*alone {
				t.Errorf("ann's review takes %v alone, and %v in the flood", alone, flooded)
			}
		})
	}
}
