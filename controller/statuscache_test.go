package controller

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// cam returns the cached parent of the tests in a version.
func cam(version int) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{UID: "cam", ResourceVersion: strconv.Itoa(version)}
}

// A status that was written takes precedence over the cache until the cache has the
// version of the write, whatever the API server has made of the status.
func TestWrittenStatus(t *testing.T) {
	c := newStatusCache[string]()
	check := func(version int, cached, want string) {
		t.Helper()
		if stored, latest, ok := c.latest(cam(version), cached); stored != want || latest != want || !ok {
			t.Errorf("version %d: stored %q, latest %q, ok %t, want %q", version, stored, latest, ok, want)
		}
	}
	check(7, "old", "old")
	c.remember("cam", "written", "9", time.Now())
	check(7, "old", "written")
	check(8, "other part changed", "written")
	check(9, "as stored", "as stored")
	check(10, "edited by another client", "edited by another client")
	if written, _ := c.count(); written != 0 {
		t.Error("the status is kept although the cache has it")
	}
	c.remember("cam", "written", "12", time.Now())
	c.observed(cam(12))
	if written, _ := c.count(); written != 0 {
		t.Error("the status is kept although the watch has delivered it")
	}
	if _, _, ok := c.latest(cam(10), "old"); ok {
		t.Error("a parent that was read before the watch delivered its status is taken for the latest")
	}
	c.observed(cam(13))
	c.remember("cam", "written", "13", time.Now()) // the answer is slower than the watch
	check(13, "as stored", "as stored")
	if written, _ := c.count(); written != 0 {
		t.Error("the status is kept although the watch had delivered it")
	}
	c.forget("cam")
	if len(c.statuses) != 0 {
		t.Error("the parent was not forgotten")
	}
}

// Versions go back when a backup of etcd is restored. What was written is then gone.
func TestVersionsThatGoBack(t *testing.T) {
	c := newStatusCache[string]()
	c.remember("cam", "written", "900", time.Now())
	c.observed(cam(900))
	c.hold("cam", "held", progress, time.Now())
	c.observed(cam(100)) // the watch lists again
	if stored, latest, ok := c.latest(cam(100), "restored"); stored != "restored" || latest != "restored" || !ok {
		t.Errorf("stored %q, latest %q, ok %t, want what was restored", stored, latest, ok)
	}
	if written, held := c.count(); written != 0 || held != 0 {
		t.Errorf("%d written and %d held statuses are in memory", written, held)
	}
}

// A status that is held back is the base of the next plan, and is written in time.
func TestHeldStatus(t *testing.T) {
	c := newStatusCache[string]()
	began := time.Now()
	hold := func(status string, urgent urgency, after, want time.Duration) {
		t.Helper()
		if wait := c.hold("cam", status, urgent, began.Add(after)); max(wait, 0) != want {
			t.Errorf("%q waits for %v after %v, want %v", status, wait, after, want)
		}
	}
	check := func(wantStored, wantLatest string, wantHeld int) {
		t.Helper()
		stored, latest, _ := c.latest(cam(7), "cached")
		if _, held := c.count(); stored != wantStored || latest != wantLatest || held != wantHeld {
			t.Errorf("stored %q, latest %q, %d held, want %q, %q, %d", stored, latest, held, wantStored, wantLatest, wantHeld)
		}
	}
	hold("on its way", settling, 0, settleDelay)
	check("cached", "on its way", 1)
	hold("further on its way", progress, settleDelay/5, settleDelay*4/5) // later passes do not extend the delay
	hold("wrong", atOnce, settleDelay/5, 0)
	c.remember("cam", "written", "9", began)
	check("written", "written", 0)
	hold("wrong again", atOnce, writeInterval/4, writeInterval*3/4)
	hold("further", progress, writeInterval, progressInterval-writeInterval)
	c.release("cam")
	check("written", "written", 0)
	hold("further", progress, progressInterval-1, settleDelay)
	hold("wrong", atOnce, progressInterval, 0)
	c.forget("cam")
	check("cached", "cached", 0)
}

// No status stays in memory, however often it changes.
func TestStatusesAreForgotten(t *testing.T) {
	const instances, changes = 100, 1000
	c := newStatusCache[v0.InstanceStatus]()
	for i := range changes {
		parent := metav1.ObjectMeta{UID: types.UID(strconv.Itoa(i % instances)), ResourceVersion: strconv.Itoa(2*i + 1)}
		status := v0.InstanceStatus{Conditions: []metav1.Condition{{Message: strconv.Itoa(i)}}}
		_, _, ok := c.latest(&parent, v0.InstanceStatus{})
		if !ok {
			t.Fatal("the parent is outdated")
		}
		c.hold(parent.UID, status, progress, time.Now())
		parent.ResourceVersion = strconv.Itoa(2*i + 2)
		c.remember(parent.UID, status, parent.ResourceVersion, time.Now())
		c.observed(&parent)
	}
	if written, held := c.count(); written != 0 || held != 0 {
		t.Errorf("%d written and %d held statuses are in memory", written, held)
	}
}
