package kinds

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// server is an API server that serves one API group.
type server struct {
	mu        sync.Mutex
	resources []metav1.APIResource
	err       error
	failed    map[schema.GroupVersion]error

	discoveries atomic.Int64
}

var twins = metav1.APIResource{Name: "twins", SingularName: "twin", Kind: "Twin", Namespaced: true}

const testGroup = "test.akri.sh"

// serve sets what the API server serves from now on.
func (s *server) serve(resources ...metav1.APIResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resources = resources
}

func (s *server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// discover returns what is served.
func (s *server) discover(context.Context) *catalog {
	s.discoveries.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return &catalog{err: s.err}
	}
	version := metav1.GroupVersionForDiscovery{GroupVersion: testGroup + "/v1", Version: "v1"}
	group := &metav1.APIGroup{Name: testGroup, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
	list := &metav1.APIResourceList{GroupVersion: testGroup + "/v1", APIResources: s.resources}
	return newCatalog([]*metav1.APIGroup{group}, []*metav1.APIResourceList{list}, s.failed)
}

// expect fails the test unless the mapper finds a kind as the given resource, "" for an
// unknown kind, and has performed that many discoveries since the last call.
func (s *server) expect(t *testing.T, m *Mapper, kind, resource string, discoveries int64) {
	t.Helper()
	time.Sleep(time.Millisecond) // what happens at the same time as a change may be before it
	mapping, err := m.RESTMapping(schema.GroupKind{Group: testGroup, Kind: kind}, "v1")
	switch {
	case resource == "" && !meta.IsNoMatchError(err):
		t.Errorf("%s: %v, %v; want an unknown kind", kind, mapping, err)
	case resource != "" && (err != nil || mapping.Resource.Resource != resource):
		t.Errorf("%s: %v, %v; want %s", kind, mapping, err, resource)
	}
	if found := s.discoveries.Swap(0); found != discoveries {
		t.Errorf("%s: %d discoveries, want %d", kind, found, discoveries)
	}
}

// Unknown kinds cost one discovery per minute, known ones none.
func TestUnknownKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.serve(twins)
		m := newMapper(s.discover)
		s.expect(t, m, "Twin", "twins", 1)
		for range 3 {
			var all sync.WaitGroup
			for i := range 1000 {
				all.Go(func() {
					kind := schema.GroupKind{Group: fmt.Sprintf("g%d.example", i%100), Kind: fmt.Sprintf("K%d", i)}
					if _, err := m.RESTMapping(kind, "v1"); !meta.IsNoMatchError(err) {
						t.Errorf("%s: %v", kind, err)
					}
					if _, err := m.KindsFor(schema.GroupVersionResource{Group: kind.Group, Resource: "ks"}); !meta.IsNoMatchError(err) {
						t.Errorf("%s: %v", kind, err)
					}
				})
			}
			all.Wait()
			if discoveries := s.discoveries.Swap(0); discoveries > 1 {
				t.Errorf("%d discoveries for 1000 unknown kinds", discoveries)
			}
			time.Sleep(maxAge)
		}
		time.Sleep(24 * time.Hour)
		s.expect(t, m, "Twin", "twins", 0)
	})
}

// A kind that was installed is found at once after its change, and within a minute
// otherwise. Discovery may lag behind the change.
func TestInstalledKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		m := newMapper(s.discover)
		s.expect(t, m, "Twin", "", 1)
		m.Changed(testGroup)
		s.expect(t, m, "Twin", "", 1) // not discoverable yet
		s.expect(t, m, "Twin", "", 0)
		s.serve(twins)
		time.Sleep(shortAge)
		s.expect(t, m, "Twin", "twins", 1)

		other := metav1.APIResource{Name: "others", SingularName: "other", Kind: "Other", Namespaced: true}
		time.Sleep(settling)
		s.expect(t, m, "Twin", "twins", 1) // the last time because of the change
		time.Sleep(shortAge)
		s.expect(t, m, "Twin", "twins", 0)
		s.serve(twins, other) // without a change that is noticed
		s.expect(t, m, "Other", "", 0)
		time.Sleep(maxAge)
		s.expect(t, m, "Other", "others", 1)
	})
}

// Changes of other API groups cost a known kind nothing.
func TestOtherGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.serve(twins)
		m := newMapper(s.discover)
		m.Changed("g.example") // also of one that is not known yet
		s.expect(t, m, "Twin", "twins", 1)
		s.fail(errors.New("no answer"))
		for i := range 250 {
			m.Changed(fmt.Sprintf("g%d.example", i))
		}
		s.expect(t, m, "Twin", "twins", 0)
	})
}

// A kind whose CustomResourceDefinition was created again is not the old one.
func TestKindsThatChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.serve(twins)
		m := newMapper(s.discover)
		s.expect(t, m, "Twin", "twins", 1)
		s.serve(metav1.APIResource{Name: "twinz", SingularName: "twin", Kind: "Twin"})
		m.Changed(testGroup)
		s.expect(t, m, "Twin", "twinz", 1)
		mapping, err := m.RESTMapping(schema.GroupKind{Group: testGroup, Kind: "Twin"}, "v1")
		if err != nil || mapping.Scope.Name() != meta.RESTScopeNameRoot {
			t.Errorf("%v, %v; want a cluster-scoped kind", mapping, err)
		}
		s.serve()
		m.Changed(testGroup)
		time.Sleep(shortAge)
		s.expect(t, m, "Twin", "", 1)
	})
}

// An API server that is starting does not list its kinds yet: without a change, they
// are not forgotten.
func TestKindsThatAreMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		other := metav1.APIResource{Name: "others", SingularName: "other", Kind: "Other", Namespaced: true}
		s.serve(twins, other)
		m := newMapper(s.discover)
		s.expect(t, m, "Twin", "twins", 1)
		s.expect(t, m, "Other", "others", 0)
		time.Sleep(maxAge)
		s.serve(other)
		s.expect(t, m, "Unknown", "", 1)
		s.expect(t, m, "Twin", "twins", 0)
		time.Sleep(maxAge)
		s.serve()
		s.expect(t, m, "Unknown", "", 1)
		s.expect(t, m, "Twin", "twins", 0)
		s.expect(t, m, "Other", "others", 0)
	})
}

// An API server that does not answer is asked once a second, and a kind is not unknown
// because of it.
func TestDiscoveryFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.serve(twins)
		m := newMapper(s.discover)
		s.expect(t, m, "Twin", "twins", 1)
		time.Sleep(maxAge)
		s.fail(errors.New("no answer"))
		for range 100 {
			_, err := m.RESTMapping(schema.GroupKind{Group: testGroup, Kind: "Unknown"}, "v1")
			if err == nil || meta.IsNoMatchError(err) {
				t.Fatalf("%v, want the error of the discovery", err)
			}
		}
		if discoveries := s.discoveries.Swap(0); discoveries != 1 {
			t.Errorf("%d discoveries, want 1", discoveries)
		}
		s.expect(t, m, "Twin", "twins", 0)
		s.fail(nil)
		time.Sleep(shortAge)
		s.expect(t, m, "Unknown", "", 1)
	})
}

// Only the kinds themselves are known: not their names in lower case or as lists.
func TestSpelling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.serve(twins, metav1.APIResource{Name: "twins/scale", Kind: "Scale"}, metav1.APIResource{Name: "gems", SingularName: "gem", Kind: "gem"})
		m := newMapper(s.discover)
		s.expect(t, m, "Twin", "twins", 1)
		s.expect(t, m, "gem", "gems", 0)
		for _, kind := range []string{"twin", "TWIN", "TwinList", "List", "Scale", "Gem", "gemList"} {
			s.expect(t, m, kind, "", 0)
		}
	})
}

// A kind of an API group whose own server does not answer is not unknown.
func TestAGroupFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{failed: map[schema.GroupVersion]error{{Group: testGroup, Version: "v1"}: errors.New("unavailable")}}
		m := newMapper(s.discover)
		_, err := m.RESTMapping(schema.GroupKind{Group: testGroup, Kind: "Twin"}, "v1")
		if err == nil || meta.IsNoMatchError(err) {
			t.Errorf("%v, want an error that names the API group", err)
		}
		if _, err := m.RESTMapping(schema.GroupKind{Group: "other.example", Kind: "Twin"}, "v1"); !meta.IsNoMatchError(err) {
			t.Errorf("%v, want an unknown kind", err)
		}
	})
}
