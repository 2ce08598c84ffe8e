package publish

import (
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"akri.sh/akri/agent/informer"
	v0 "akri.sh/akri/api/v0"
)

// unseenLimit is how long an answer to a write stands in for what the watch has
// not brought yet.
const unseenLimit = 10 * time.Second

const byConfiguration = "configuration"

// Instances are those of this node: as watched, and where we have just written
// one and the watch lags, as written.
type Instances struct {
	informer cache.SharedIndexInformer

	mu      sync.Mutex
	written map[types.NamespacedName]answer
}

type answer struct {
	instance *v0.Instance
	at       time.Time
}

// NewInstances watches the Instances of a node and calls changed, which must
// not block, with the Configuration of each that changes.
func NewInstances(client dynamic.Interface, node string, changed func(types.NamespacedName)) (*Instances, error) {
	selector := v0.NodeLabel(node)
	s := &Instances{written: map[types.NamespacedName]answer{}}
	s.informer = informer.Objects(client.Resource(v0.InstanceResource),
		func(options *metav1.ListOptions) { options.LabelSelector = selector },
		func(object *unstructured.Unstructured) (metav1.Object, error) { return read(object) })
	if err := s.informer.AddIndexers(cache.Indexers{byConfiguration: func(object any) ([]string, error) {
		return []string{configurationOf(object.(*v0.Instance)).String()}, nil
	}}); err != nil {
		return nil, err
	}
	_, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { changed(configurationOf(object.(*v0.Instance))) },
		UpdateFunc: func(before, after any) {
			changed(configurationOf(before.(*v0.Instance)))
			changed(configurationOf(after.(*v0.Instance)))
		},
		DeleteFunc: func(object any) {
			if gone, missed := object.(cache.DeletedFinalStateUnknown); missed {
				object = gone.Obj
			}
			instance := object.(*v0.Instance)
			s.forget(instance)
			changed(configurationOf(instance))
		},
	})
	return s, err
}

// Informer is to be run, and to have synced before anything is read.
func (s *Instances) Informer() cache.SharedIndexInformer { return s.informer }

// Of are the Instances of a Configuration, in no order. They must not be
// changed.
func (s *Instances) Of(configuration types.NamespacedName) []*v0.Instance {
	watched, err := s.informer.GetIndexer().ByIndex(byConfiguration, configuration.String())
	if err != nil {
		return nil // only for an unknown index
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*v0.Instance
	seen := map[types.NamespacedName]bool{}
	for _, object := range watched {
		instance := object.(*v0.Instance)
		name := nameOf(instance)
		seen[name] = true
		if newer, found := s.unseen(name, instance); found {
			instance = newer
		}
		all = append(all, instance)
	}
	for name, written := range s.written {
		if seen[name] || configurationOf(written.instance) != configuration {
			continue
		}
		if instance, found := s.unseen(name, nil); found {
			all = append(all, instance)
		}
	}
	return all
}

// Count is how many Instances there are, by Configuration and whether shared.
func (s *Instances) Count() map[types.NamespacedName]map[bool]int {
	counts := map[types.NamespacedName]map[bool]int{}
	for _, object := range s.informer.GetStore().List() {
		instance := object.(*v0.Instance)
		name := configurationOf(instance)
		if counts[name] == nil {
			counts[name] = map[bool]int{}
		}
		counts[name][instance.Spec.Shared]++
	}
	return counts
}

// note keeps the answer to a write until the watch brings it.
func (s *Instances) note(instance *v0.Instance, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written[nameOf(instance)] = answer{instance, now}
}

func (s *Instances) forget(instance *v0.Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if written, found := s.written[nameOf(instance)]; found && written.instance.UID == instance.UID {
		delete(s.written, nameOf(instance))
	}
}

// unseen is the answer to our last write if it is newer than what was watched;
// the lock is held.
func (s *Instances) unseen(name types.NamespacedName, watched *v0.Instance) (*v0.Instance, bool) {
	written, found := s.written[name]
	switch {
	case !found:
		return nil, false
	case time.Since(written.at) > unseenLimit, watched != nil && !newer(written.instance, watched):
		delete(s.written, name)
		return nil, false
	}
	return written.instance, true
}

func newer(a, b *v0.Instance) bool {
	versionA, errA := strconv.ParseUint(a.ResourceVersion, 10, 64)
	versionB, errB := strconv.ParseUint(b.ResourceVersion, 10, 64)
	return errA == nil && errB == nil && versionA > versionB
}

// read takes of an Instance what agents read.
func read(object *unstructured.Unstructured) (*v0.Instance, error) {
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	instance := &v0.Instance{}
	if err := informer.Convert(object, instance); err != nil {
		return nil, err
	}
	return instance, nil
}

func nameOf(instance *v0.Instance) types.NamespacedName {
	return types.NamespacedName{Namespace: instance.Namespace, Name: instance.Name}
}

func configurationOf(instance *v0.Instance) types.NamespacedName {
	return types.NamespacedName{Namespace: instance.Namespace, Name: instance.Spec.ConfigurationName}
}
