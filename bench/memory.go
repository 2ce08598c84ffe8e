package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// memoryDelay gives the controller's garbage collector and scavenger time to run
// before its memory is read.
const memoryDelay = 15 * time.Second

// maxMemory returns the limit for a number of Instances in MB, or 0 if there is none.
func maxMemory(count int) float64 {
	switch {
	case count <= 300:
		return 40
	case count <= 500:
		return 50
	case count == maxInstances:
		return 80
	}
	return 0
}

// resident returns the controller's memory at rest, in MB.
func (b *bench) resident(ctx context.Context) (memory map[string]float64, err error) {
	if !sleep(ctx, memoryDelay) {
		return nil, ctx.Err()
	}
	used, err := b.running.memory()
	if err != nil {
		return nil, err
	}
	const inuse = "go_memstats_heap_inuse_bytes "
	values, err := b.running.gauges(ctx, inuse)
	return map[string]float64{
		"rss": float64(used.now) / 1e6, "file": float64(used.file) / 1e6, "peak": float64(used.peak) / 1e6, "heap_inuse": values[inuse] / 1e6,
	}, err
}

// rss adds a figure with the memory of the running controller.
func (b *bench) rss(ctx context.Context, count int) error {
	memory, err := b.resident(ctx)
	if err != nil {
		return err
	}
	b.add(memoryRow(count, memory))
	return b.profileHeap(ctx, b.running, fmt.Sprintf("heap-%d", count))
}

// memoryRow returns the row for the memory, in MB, with count Instances.
func memoryRow(count int, memory map[string]float64) figure {
	now := memory["rss"]
	row := figure{
		What: fmt.Sprintf("RSS of the controller, %d Instances x 3", count),
		Measured: fmt.Sprintf("%.0f MB, including %.0f MB of file pages; peak %.0f MB, heap in use %.0f MB",
			now, memory["file"], memory["peak"], memory["heap_inuse"]),
		Raw: map[string]any{"mb": memory},
	}
	if limit := maxMemory(count); limit > 0 {
		row.Bar, row.Met = fmt.Sprintf("<= %.0f MB", limit), now <= limit
	}
	return row
}

// memory measures whether unrelated objects increase the controller's memory.
func (b *bench) memory(ctx context.Context) error {
	if err := b.ensureController(ctx); err != nil {
		return err
	}
	restarted := func() (map[string]float64, error) {
		if err := b.stopController(); err != nil {
			return nil, err
		}
		p, err := b.startController()
		if err != nil {
			return nil, err
		}
		if err := p.awaitRest(ctx, b.currentCount); err != nil {
			return nil, err
		}
		return b.resident(ctx)
	}
	before, err := restarted()
	if err != nil {
		return err
	}
	b.namespaces++
	namespace := fmt.Sprintf("foreign-%d", b.namespaces)
	if _, err := b.admin.Resource(namespaces).Create(ctx, object("v1", "Namespace", "", namespace, nil), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create a namespace: %w", err)
	}
	filling := strings.Repeat("x", 1000)
	err = inParallel(creators, func(worker int) error {
		for i := worker; i < b.Foreign; i += creators {
			foreign := object("v1", "ConfigMap", namespace, fmt.Sprintf("foreign-%d", i), map[string]any{"data": map[string]any{"key": filling}})
			if _, err := b.creators[worker].Resource(configMaps).Namespace(namespace).Create(ctx, foreign, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("create a foreign object: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	running, err := b.resident(ctx)
	if err != nil {
		return err
	}
	after, err := restarted()
	if err != nil {
		return err
	}
	b.add(foreignRow(b.currentCount, b.Foreign, before, running, after))
	return nil
}

// foreignRow returns the row for the memory, in MB, before and after foreign objects
// were created, and after a restart.
func foreignRow(count, foreign int, before, running, after map[string]float64) figure {
	const noise = 1.1
	return figure{
		What: fmt.Sprintf("RSS with %d Instances x 3 without and with %d foreign objects", count, foreign),
		Measured: fmt.Sprintf("%.0f MB, %.0f MB; restarted with them %.0f MB; heap in use %.0f MB, %.0f MB",
			before["rss"], running["rss"], after["rss"], before["heap_inuse"], after["heap_inuse"]),
		Bar: "unchanged (+ 10 %)", Met: running["rss"] <= noise*before["rss"] && after["rss"] <= noise*before["rss"],
		Raw: map[string]any{"before_mb": before, "after_mb": running, "restarted_mb": after},
	}
}

// profileCPU starts recording a five-second profile, if profiles are requested. The
// returned function waits until it is written.
func (b *bench) profileCPU(ctx context.Context, p *process, name string) (stop func()) {
	if b.Profiles == "" {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := b.profile(ctx, p.pprof+"/debug/pprof/profile?seconds=5", name); err != nil {
			b.logf("%v", err)
		}
	}()
	return func() { <-done }
}

// profileHeap writes a heap profile, if profiles are requested.
func (b *bench) profileHeap(ctx context.Context, p *process, name string) error {
	if b.Profiles == "" {
		return nil
	}
	return b.profile(ctx, p.pprof+"/debug/pprof/heap?gc=1", name)
}

// profile downloads a profile into a file.
func (b *bench) profile(ctx context.Context, url, name string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("take a profile: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("take a profile: %s", response.Status)
	}
	if err := os.MkdirAll(b.Profiles, 0o755); err != nil {
		return fmt.Errorf("create the directory of profiles: %w", err)
	}
	file, err := os.Create(filepath.Join(b.Profiles, name+".pprof"))
	if err != nil {
		return fmt.Errorf("create a profile: %w", err)
	}
	defer file.Close()
	_, err = io.Copy(file, response.Body)
	return err
}
