package objects

import (
	"context"
	"encoding/json"
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
	"k8s.io/client-go/transport"
)

// Client sends requests about single objects, and returns the answers undecoded. It is
// safe for concurrent use.
type Client struct {
	api  rest.Interface
	user string // that all requests impersonate, if it is not empty
}

// NewClient returns a Client. Requests go through the HTTP client, or one of their own if
// it is nil.
func NewClient(config *rest.Config, connections *http.Client) (*Client, error) {
	config = dynamic.ConfigFor(config)                                   // for all resources, with JSON
	config.GroupVersion, config.APIPath = &schema.GroupVersion{}, "/api" // each request sets its own
	var err error
	if connections == nil {
		connections, err = rest.HTTPClientFor(config)
	}
	if err != nil {
		return nil, fmt.Errorf("create an HTTP client: %w", err)
	}
	api, err := rest.RESTClientForConfigAndClient(config, connections)
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	return &Client{api: api}, nil
}

// As returns a client that acts as a user, on the same connections.
func (c *Client) As(user string) *Client { return &Client{api: c.api, user: user} }

// Get reads an object.
func (c *Client) Get(ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName) (Answer, error) {
	return c.send(ctx, c.api.Get(), resource, name, &metav1.GetOptions{})
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
	return c.send(ctx, c.api.Patch(kind).Body(body), resource, name, &options, subresources...)
}

// Delete deletes an object.
func (c *Client) Delete(
	ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName, options metav1.DeleteOptions,
) error {
	body, err := json.Marshal(options)
	if err == nil {
		request := c.api.Delete().SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body)
		_, err = c.send(ctx, request, resource, name, &metav1.DeleteOptions{})
	}
	return err
}

// send sends a request about an object, or about a list. Templates choose names and
// namespaces: those that would change the path are refused.
func (c *Client) send(
	ctx context.Context, request *rest.Request, resource schema.GroupVersionResource, name types.NamespacedName,
	options runtime.Object, subresources ...string,
) (Answer, error) {
	if _, lists := options.(*metav1.ListOptions); !lists {
		if reasons := rest.IsValidPathSegmentName(name.Name); name.Name == "" || len(reasons) > 0 {
			return nil, fmt.Errorf("invalid resource name %q: %v", name.Name, reasons)
		}
		request.Suffix(append([]string{name.Name}, subresources...)...) // with Name, a 404 about the path would name the object
	}
	if c.user != "" {
		request.SetHeader(transport.ImpersonateUserHeader, c.user)
	}
	path := []string{"/apis", resource.Group, resource.Version}
	if resource.Group == "" {
		path = []string{"/api", resource.Version}
	}
	result := request.AbsPath(path...).NamespaceIfScoped(name.Namespace, name.Namespace != "").Resource(resource.Resource).
		SpecificallyVersionedParams(options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).Do(ctx)
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
	options := &metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for more := true; more; more = more && options.Continue != "" {
		answer, err := c.send(ctx, c.api.Get(), resource, types.NamespacedName{Namespace: namespace}, options)
		if err != nil {
			return "", err
		}
		var page struct {
			metav1.TypeMeta
			Metadata metav1.ListMeta   `json:"metadata"`
			Items    []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return "", fmt.Errorf("read a list: %w", err)
		}
		listed, options.Continue = page.Metadata.ResourceVersion, page.Metadata.Continue
		for _, item := range page.Items {
			err := Answer(item).Read(func(object *unstructured.Unstructured) {
				if object.GetKind() == "" { // the list says it for all
					object.SetAPIVersion(page.APIVersion)
					object.SetKind(strings.TrimSuffix(page.Kind, "List"))
				}
				more = more && use(object)
			})
			if err != nil {
				return "", err
			}
		}
	}
	return listed, nil
}
