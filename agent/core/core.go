// Package core creates the client with which the agent reads objects of the core API:
// Pods, Secrets and ConfigMaps.
//
// It knows only these kinds. The client set of client-go links every kind of Kubernetes
// into the binary.
//
// Always: protobuf, which takes a fraction of the memory of JSON. Never: a write.
package core

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Metadata is the header Accept of requests for a list of metadata only.
const Metadata = runtime.ContentTypeProtobuf + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
	runtime.ContentTypeJSON + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// NewClient returns a client of the core API, version v1.
func NewClient(config *rest.Config) (rest.Interface, error) {
	version := corev1.SchemeGroupVersion
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(version,
		&corev1.Pod{}, &corev1.PodList{}, &corev1.Secret{}, &corev1.SecretList{}, &corev1.ConfigMap{}, &corev1.ConfigMapList{})
	metav1.AddToGroupVersion(scheme, version)
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &version
	config.ContentType = runtime.ContentTypeProtobuf
	config.DisableCompression = true // 40 KB for each watch
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("create the client of the core API: %w", err)
	}
	return client, nil
}
