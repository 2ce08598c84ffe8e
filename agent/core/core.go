// Package core creates the client with which the agent reads objects of the core API
// whose size others choose: Pods, Secrets and ConfigMaps.
//
// A dynamic client decodes a whole response, with everything that is in it. This client
// gives the response to the caller, who decodes what it needs, piece by piece.
//
// Never: a typed client.
package core

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// NewClient returns a client of the core API, version v1.
func NewClient(config *rest.Config) (rest.Interface, error) {
	config = dynamic.ConfigFor(config) // JSON only
	config.APIPath, config.GroupVersion = "/api", &schema.GroupVersion{Version: "v1"}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("create the client of the core API: %w", err)
	}
	return client, nil
}
