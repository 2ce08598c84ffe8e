package controller

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/kinds"
	"akri.sh/akri/controller/nodes"
	"akri.sh/akri/internal/metadata"
)

// Options are the controller's settings.
type Options struct {
	// Workers is how many Instances, and how many Configurations, of one namespace
	// are reconciled at the same time. One more is for other namespaces.
	Workers int
	// NodeGrace is how long a node may be not Ready before it is removed from its
	// Instances; 0 is forever. See docs/nodes.md.
	NodeGrace time.Duration
	// SweepEvery is the interval of the search for strays; 0 is never. See package
	// sweep.
	SweepEvery time.Duration
	// Metrics is where the controller's metrics are registered; nil is nowhere.
	Metrics prometheus.Registerer
	// Policy holds the restrictions on templates that the operator has lifted.
	Policy confine.Policy
}

func (o Options) validate() error {
	if o.Workers < 1 {
		return fmt.Errorf("workers: %d is too few: want at least 1", o.Workers)
	}
	if o.NodeGrace < 0 {
		return fmt.Errorf("grace period of nodes: %v is negative: want 0 (never removed) or more", o.NodeGrace)
	}
	if o.SweepEvery < 0 {
		return fmt.Errorf("sweep interval: %v is negative: want 0 (never) or more", o.SweepEvery)
	}
	return nil
}

// CacheOptions returns options that keep the manager's cache small: Akri's own
// kinds lose most of their metadata, Configurations also what only agents and the webhook
// read, CustomResourceDefinitions all but their names, and nodes most of their content.
func CacheOptions() cache.Options {
	strip := cache.TransformStripManagedFields()
	return cache.Options{
		DefaultTransform: func(object any) (any, error) {
			switch object := object.(type) {
			case *corev1.Node:
				return nodes.Reduce(object), nil
			case *v0.Configuration:
				return reduceConfiguration(object)
			case *v0.Instance:
				object.ObjectMeta = metadata.OfInstance(object)
				return object, nil
			}
			return strip(object)
		},
		ByObject: map[client.Object]cache.ByObject{kinds.CRD(): {Transform: kinds.Trim}},
	}
}

// reduceConfiguration drops what the controller does not read of a Configuration, and packs
// its templates: decoded, they take up to forty times their size in JSON. The templates in
// use are decoded when they are compiled.
func reduceConfiguration(configuration *v0.Configuration) (*v0.Configuration, error) {
	configuration.ObjectMeta = metadata.OfConfiguration(configuration)
	spec := &configuration.Spec
	spec.DiscoveryHandler.DiscoveryDetails, spec.DiscoveryHandler.DiscoveryProperties = "", nil
	spec.SampleProperties = nil
	for _, list := range [][]v0.BrokerResource{spec.InstanceBrokerResources, spec.ConfigurationBrokerResources} {
		for i := range list {
			if err := list[i].Pack(); err != nil {
				return nil, err
			}
		}
	}
	return configuration, nil
}
