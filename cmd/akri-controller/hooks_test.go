package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
)

// TestDeletes decides by Helm's labels and annotations whether Helm would delete a
// Configuration.
func TestDeletes(t *testing.T) {
	for name, test := range map[string]struct {
		managedBy string
		change    map[string]string // of the annotations that Helm sets
		want      bool
	}{
		"of the release":            {managedBy: "Helm", want: true},
		"of another release":        {managedBy: "Helm", change: map[string]string{"meta.helm.sh/release-name": "other"}},
		"of another namespace":      {managedBy: "Helm", change: map[string]string{"meta.helm.sh/release-namespace": "other"}},
		"to be kept":                {managedBy: "Helm", change: map[string]string{"helm.sh/resource-policy": "keep"}},
		"of a tool that renders":    {managedBy: "Helm", change: map[string]string{"meta.helm.sh/release-name": ""}},
		"taken over by another one": {managedBy: "Argo"},
	} {
		configuration := &v0.Configuration{}
		configuration.Labels = map[string]string{"app.kubernetes.io/managed-by": test.managedBy}
		configuration.Annotations = map[string]string{"meta.helm.sh/release-name": "akri", "meta.helm.sh/release-namespace": "akri-system"}
		maps.Copy(configuration.Annotations, test.change)
		r := helmRelease{name: "akri", namespace: "akri-system"}
		if got := r.deletes(configuration); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestParseKeys(t *testing.T) {
	keys, err := parseKeys([]string{"default/cameras", "akri-system/plc"})
	if err != nil || fmt.Sprint(keys) != "[default/cameras akri-system/plc]" {
		t.Error(keys, err)
	}
	for _, name := range []string{"", "cameras", "/cameras", "default/", "default/cameras/0"} {
		if keys, err := parseKeys([]string{name}); err == nil {
			t.Errorf("%q: %v, want an error", name, keys)
		}
	}
}

// configurationOf returns a Configuration as Helm creates it for a release in the world's
// namespace.
func configurationOf(w *apitest.World, name, release string) *v0.Configuration {
	configuration := &v0.Configuration{ObjectMeta: w.Meta(name)}
	configuration.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	configuration.Annotations = map[string]string{"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": w.Namespace}
	configuration.Spec.DiscoveryHandler = v0.DiscoveryHandler{Name: "debugEcho", DiscoveryDetails: "descriptions: [a]"}
	return configuration
}

func (r *helmRelease) in(w *apitest.World, timeout time.Duration, names ...string) {
	r.name, r.namespace, r.timeout = "akri", w.Namespace, timeout
	for _, name := range names {
		r.configurations = append(r.configurations, w.Namespace+"/"+name)
	}
}

// TestPreDelete deletes the Configurations of a release, and waits for their finalizer and
// their Instances, where the test is the controller and the garbage collector.
func TestPreDelete(t *testing.T) {
	w := apitest.NewWorld(t)
	ours, others := configurationOf(w, "ours", "akri"), configurationOf(w, "others", "other")
	ours.Finalizers = []string{v0.FinalizerCleanup}
	for _, object := range []client.Object{ours, others} {
		if err := w.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	instance, kept := w.Instance("ours", "ours-0a1b2c", nil), w.Instance("others", "others-0a1b2c", nil)

	var early preDeleteCommand
	early.in(w, 2*time.Second, "ours", "others", "missing")
	err := early.serve(t.Context(), apitest.Start(t))
	if err == nil {
		t.Fatal("it did not wait for the finalizer")
	}
	for _, part := range []string{
		"Configuration " + w.Namespace + "/ours (finalizers: akri.sh/cleanup)", "Instance " + w.Namespace + "/ours-0a1b2c", "--no-hooks",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error has no %q:\n%v", part, err)
		}
	}
	if strings.Contains(err.Error(), "others") {
		t.Errorf("the error names another release's objects:\n%v", err)
	}

	var again preDeleteCommand
	again.in(w, time.Minute, "ours", "others", "missing")
	done := make(chan error)
	go func() { done <- again.serve(t.Context(), apitest.Start(t)) }()
	w.Read("ours", ours)
	ours.Finalizers = nil
	if err := w.Update(t.Context(), ours); err != nil {
		t.Error(err)
	}
	if err := w.Delete(t.Context(), instance); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the second run: %v", err)
	}
	if err := w.Get(t.Context(), w.Key("ours"), ours); !apierrors.IsNotFound(err) {
		t.Errorf("the Configuration of the release: %v", err)
	}
	w.Read("others", others)
	w.Read(kept.Name, kept)
	if !others.DeletionTimestamp.IsZero() {
		t.Error("another release's Configuration is being deleted")
	}
}

// TestPreDeleteKeepsTheNext does not delete a Configuration of the same name that was
// created after the command had read the release's.
func TestPreDeleteKeepsTheNext(t *testing.T) {
	w := apitest.NewWorld(t)
	ours := configurationOf(w, "ours", "akri")
	if err := w.Create(t.Context(), ours); err != nil {
		t.Fatal(err)
	}
	watched, err := client.NewWithWatch(apitest.Start(t), client.Options{Scheme: w.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	next := configurationOf(w, "ours", "other")
	var c preDeleteCommand
	c.in(w, apitest.Timeout)
	c.keys = []client.ObjectKey{w.Key("ours")}
	c.api = interceptor.NewClient(watched, interceptor.Funcs{
		Delete: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := errors.Join(w.Delete(ctx, ours), w.Create(ctx, next)); err != nil {
				t.Error(err)
			}
			return api.Delete(ctx, object, options...)
		},
	})
	if _, err := c.delete(t.Context()); !apierrors.IsConflict(err) {
		t.Errorf("%v, want a conflict", err)
	}
	w.Read("ours", ours)
	if ours.UID != next.UID || !ours.DeletionTimestamp.IsZero() {
		t.Error("another's Configuration was deleted")
	}
}

// TestRollback keeps the Configurations of a release while Helm returns to a revision without
// them, and then makes them what its values say.
func TestRollback(t *testing.T) {
	w := apitest.NewWorld(t)
	ours, others := configurationOf(w, "ours", "akri"), configurationOf(w, "others", "other")
	ours.Spec.Capacity = 2
	for _, object := range []client.Object{ours, others} {
		if err := w.Create(t.Context(), object, client.FieldOwner("helm")); err != nil {
			t.Fatal(err)
		}
	}
	var before preRollbackCommand
	before.in(w, apitest.Timeout, "ours", "others", "missing")
	if err := before.serve(t.Context(), apitest.Start(t)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*v0.Configuration{ours, others} {
		w.Read(c.Name, c)
		if kept := c.Annotations[resourcePolicy] == "keep"; kept != (c.Name == "ours") {
			t.Errorf("%s is kept: %t", c.Name, kept)
		}
	}

	uid := ours.UID
	after := func(configurations ...*v0.Configuration) error {
		t.Helper()
		c := postInstallCommand{file: filepath.Join(t.TempDir(), "configurations.json")}
		c.in(w, apitest.Timeout)
		data, err := json.Marshal(configurations)
		if err == nil {
			err = os.WriteFile(c.file, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return c.serve(t.Context(), apitest.Start(t))
	}
	first, created := configurationOf(w, "ours", "akri"), configurationOf(w, "new", "akri")
	for _, c := range []*v0.Configuration{first, created} {
		c.TypeMeta = metav1.TypeMeta{APIVersion: v0.GroupVersion.String(), Kind: "Configuration"}
		c.Spec.DiscoveryHandler.DiscoveryDetails = "descriptions: [b]"
	}
	if err := after(first, created); err != nil {
		t.Fatal(err)
	}
	w.Read("ours", ours)
	if ours.UID != uid || ours.Annotations[resourcePolicy] != "" || ours.Spec.Capacity == 2 ||
		ours.Spec.DiscoveryHandler.DiscoveryDetails != "descriptions: [b]" {
		t.Errorf("after the rollback: %v %+v", ours.Annotations, ours.Spec)
	}
	w.Read("new", created)

	// What time does not mend is told at once.
	theirs, invalid := first.DeepCopy(), first.DeepCopy()
	theirs.Name = "others"
	invalid.Spec.Capacity = -1
	for want, wrong := range map[string]*v0.Configuration{"does not belong to the release akri": theirs, "spec.capacity": invalid} {
		began := time.Now()
		err := after(wrong)
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), want) || took > apitest.Timeout/2 {
			t.Errorf("want %q: after %v: %v", want, took, err)
		}
	}
}
