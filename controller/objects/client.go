package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// version is that of the options of requests.
var version = schema.GroupVersion{Version: "v1"}

// errNoName means that a request about an object would be one about all.
var errNoName = errors.New("the name is missing")

// Client sends requests about single objects, and returns the answers undecoded. It is
// safe for concurrent use.
type Client struct{ api rest.Interface }

// NewClient returns a Client. Requests go through the HTTP client, or one of their own if
// it is nil.
func NewClient(config *rest.Config, transport *http.Client) (*Client, error) {
	api, err := newREST(config, transport)
	if err != nil {
		return nil, err
	}
	return &Client{api: api}, nil
}

// newREST returns a client for all resources, with JSON.
func newREST(config *rest.Config, transport *http.Client) (rest.Interface, error) {
	config = dynamic.ConfigFor(config)
	config.GroupVersion = &schema.GroupVersion{}
	config.APIPath = "/api" // each request sets its own
	if transport == nil {
		var err error
		if transport, err = rest.HTTPClientFor(config); err != nil {
			return nil, fmt.Errorf("create an HTTP client: %w", err)
		}
	}
	client, err := rest.RESTClientForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	return client, nil
}

// pathOf returns the path of an object, or of a collection if the name is empty.
func pathOf(resource schema.GroupVersionResource, name types.NamespacedName, subresources ...string) []string {
	path := []string{"/apis", resource.Group, resource.Version}
	if resource.Group == "" {
		path = []string{"/api", resource.Version}
	}
	if name.Namespace != "" {
		path = append(path, "namespaces", name.Namespace)
	}
	path = append(path, resource.Resource)
	if name.Name != "" {
		path = append(path, name.Name)
	}
	return append(path, subresources...)
}

// Get reads an object.
func (c *Client) Get(ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName) (Answer, error) {
	if name.Name == "" {
		return nil, errNoName
	}
	return send(ctx, c.api.Get(), resource, name, &metav1.GetOptions{})
}

// Create creates an object.
func (c *Client) Create(
	ctx context.Context, resource schema.GroupVersionResource, namespace string, object any, options metav1.CreateOptions,
) (Answer, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write the object: %w", err)
	}
	request := c.api.Post().Body(body).SetHeader("Content-Type", runtime.ContentTypeJSON)
	return send(ctx, request, resource, types.NamespacedName{Namespace: namespace}, &options)
}

// Apply applies an object.
func (c *Client) Apply(
	ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName, object any, options metav1.ApplyOptions,
) (Answer, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write the object: %w", err)
	}
	return c.Patch(ctx, resource, name, types.ApplyPatchType, body, options.ToPatchOptions())
}

// Patch changes an object.
func (c *Client) Patch(
	ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName,
	kind types.PatchType, body []byte, options metav1.PatchOptions, subresources ...string,
) (Answer, error) {
	if name.Name == "" {
		return nil, errNoName
	}
	return send(ctx, c.api.Patch(kind).Body(body), resource, name, &options, subresources...)
}

// Delete deletes an object.
func (c *Client) Delete(
	ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName, options metav1.DeleteOptions,
) error {
	return dynamic.New(c.api).Resource(resource).Namespace(name.Namespace).Delete(ctx, name.Name, options)
}

func send(
	ctx context.Context, request *rest.Request, resource schema.GroupVersionResource, name types.NamespacedName,
	options runtime.Object, subresources ...string,
) (Answer, error) {
	for _, segment := range []string{name.Namespace, name.Name} { // templates choose them
		if reasons := rest.IsValidPathSegmentName(segment); len(reasons) > 0 {
			return nil, fmt.Errorf("invalid resource name %q: %v", segment, reasons)
		}
	}
	result := request.AbsPath(pathOf(resource, name, subresources...)...).
		SpecificallyVersionedParams(options, metav1.ParameterCodec, version).Do(ctx)
	if err := result.Error(); err != nil { // with what the API server says; that of Raw is without
		return nil, err
	}
	return result.Raw()
}

// pageSize is how many objects of a list are read with one request. Each may have more than
// a megabyte.
const pageSize = 5

// List reads the objects of a namespace, or of all if it is empty, that a selector of labels
// selects. It calls a function with each, as [Answer.Read] does, until that returns false.
// It returns the version of the list.
func (c *Client) List(
	ctx context.Context, resource schema.GroupVersionResource, namespace, selector string, use func(*unstructured.Unstructured) bool,
) (listed string, err error) {
	for next := ""; ; {
		var answer Answer
		answer, err = send(ctx, c.api.Get(), resource, types.NamespacedName{Namespace: namespace},
			&metav1.ListOptions{LabelSelector: selector, Limit: pageSize, Continue: next})
		if err != nil {
			return "", err
		}
		var page struct {
			APIVersion string            `json:"apiVersion"`
			Kind       string            `json:"kind"`
			Metadata   metav1.ListMeta   `json:"metadata"`
			Items      []json.RawMessage `json:"items"`
		}
		if err = json.Unmarshal(answer, &page); err != nil {
			return "", fmt.Errorf("read a list: %w", err)
		}
		more := true
		for _, item := range page.Items {
			err = Answer(item).Read(func(object *unstructured.Unstructured) {
				if object.GetKind() == "" { // the list says it for all
					object.SetAPIVersion(page.APIVersion)
					object.SetKind(strings.TrimSuffix(page.Kind, "List"))
				}
				more = use(object)
			})
			if err != nil || !more {
				return page.Metadata.ResourceVersion, err
			}
		}
		if next = page.Metadata.Continue; next == "" {
			return page.Metadata.ResourceVersion, nil
		}
	}
}
