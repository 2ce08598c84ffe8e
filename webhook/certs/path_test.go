package certs

import (
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// replica is one of several that share a Secret and a registration.
type replica struct {
	*State
	*testing.T
}

func newReplica(t *testing.T, now *time.Time) replica {
	t.Helper()
	state := newState()
	state.now = func() time.Time { return *now }
	return replica{state, t}
}

// read gives the replica the current objects, as its watches do.
func (r replica) read(secret *corev1.Secret, registration *admissionregistrationv1.ValidatingWebhookConfiguration) {
	r.Helper()
	if err := r.updateSecret(secret.DeepCopy()); err != nil {
		r.Fatal(err)
	}
	if err := r.updateRegistration(registration.DeepCopy()); err != nil {
		r.Fatal(err)
	}
}

// stale reports whether the objects differ from those that the replica has read.
func (r replica) stale(secret *corev1.Secret, registration *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	return string(secret.Data[pathKey]) != r.paths.stored || pathOf(registration) != r.paths.registered
}

// A path is created, registered and replaced so that every replica serves the path that
// an API server uses, even one that has not seen the latest registration.
func TestPathIsReplacedWithoutLoss(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	certificate, key := pair(t)
	secret := &corev1.Secret{Data: map[string][]byte{CertFile: certificate, KeyFile: key}}
	registration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: RegistrationName},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{}},
		}},
	}
	replicas := []replica{newReplica(t, &now), newReplica(t, &now)}
	used := map[string]time.Time{} // by an API server, until
	first := ""
	for step := range 8000 { // more than an hour
		now = now.Add(pathInterval)
		if step == 4000 { // one replica restarts
			replicas[1] = newReplica(t, &now)
		}
		for _, r := range replicas {
			if r.secret == nil || r.stale(secret, registration) {
				r.read(secret, registration)
			}
		}
		switch changed := replicas[step%2].pathChange().(type) {
		case *corev1.Secret:
			secret = changed
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			used[pathOf(registration)] = now.Add(pathGrace / 2) // API servers may be behind
			registration = changed
		}
		if path := pathOf(registration); path != "" {
			used[path] = now.Add(pathGrace / 2)
		}
		for path, until := range used {
			if path == "" || now.After(until) {
				continue
			}
			if first == "" {
				first = path
			}
			for i, r := range replicas {
				if !r.Served(path) {
					t.Fatalf("step %d: replica %d does not serve %s", step, i, path)
				}
			}
		}
	}
	if len(used) != 3 { // none, the first, the second
		t.Errorf("the paths were %v", used)
	}
	for _, path := range []string{first, Path, "/", "", Path + "/"} {
		if replicas[0].Served(path) {
			t.Errorf("%q is served", path)
		}
	}
}

// A registration without a path, or with one that can be guessed, opens no other path.
func TestOnlyUnguessablePathsAreServed(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := newReplica(t, &now)
	for _, path := range []string{"/", Path, Path + "/1800000000-short", Path + "/x-" + strings.Repeat("a", 26)} {
		r.paths.register(path, now)
		r.paths.store(path, now)
		if r.Served(path) {
			t.Errorf("%q is served", path)
		}
	}
	path := newPath(now)
	if r.paths.register(path, now); !r.Served(path) || r.Served(path+"x") || r.Served(path[:len(path)-1]) {
		t.Errorf("%q, and only that, has to be served", path)
	}
}
