package v0

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is akri.sh/v0.
	GroupVersion = schema.GroupVersion{Group: Domain, Version: "v0"}

	// ConfigurationKind is the kind of a [Configuration].
	ConfigurationKind = GroupVersion.WithKind("Configuration")
	// InstanceKind is the kind of an [Instance].
	InstanceKind = GroupVersion.WithKind("Instance")
	// ConfigurationResource is the resource of Configurations.
	ConfigurationResource = GroupVersion.WithResource("configurations")
	// InstanceResource is the resource of Instances.
	InstanceResource = GroupVersion.WithResource("instances")

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers both kinds.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Configuration{}, &ConfigurationList{},
		&Instance{}, &InstanceList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
