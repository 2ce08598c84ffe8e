package v0

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is akri.sh/v0.
	GroupVersion = schema.GroupVersion{Group: Domain, Version: "v0"}

	// ConfigurationKind and InstanceKind are the two kinds of Akri.
	// ConfigurationResource and InstanceResource are their resources.
	ConfigurationKind     = GroupVersion.WithKind("Configuration")
	InstanceKind          = GroupVersion.WithKind("Instance")
	ConfigurationResource = GroupVersion.WithResource("configurations")
	InstanceResource      = GroupVersion.WithResource("instances")

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
