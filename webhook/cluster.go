package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/confine"
)

// cluster sends the requests of the checks to the API server. It cannot write.
type cluster struct {
	mapper  Mapper
	objects *apply.Client
	rights  authorizationclient.SubjectAccessReviewInterface
	api     rest.Interface
	// policy and requireUse are as in [Options].
	policy     confine.Policy
	requireUse bool
}

func newCluster(options Options) (*cluster, error) {
	config := guarded(options.Config)
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("create a client for dry runs: %w", err)
	}
	objects, err := apply.NewClient(config, transport)
	if err != nil {
		return nil, err
	}
	rights, err := authorizationclient.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("create a client for access reviews: %w", err)
	}
	return &cluster{
		mapper: options.Mapper, objects: objects, rights: rights.SubjectAccessReviews(), api: rights.RESTClient(),
		policy: options.Policy, requireUse: options.RequireUse,
	}, nil
}

// guarded returns the configuration with a transport that cannot write.
func guarded(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(apply.DryRunOnly)
	config.QPS = -1 // each review limits its own requests
	// The log must not show what the API server says about an object.
	config.WarningHandler = rest.NoWarnings{}
	return config
}

// client returns a client that acts as the ServiceAccount in the Configuration, or
// as the webhook if it names none.
func (c *cluster) client(configuration *v0.Configuration) *apply.Client {
	return c.objects.As(types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Spec.ServiceAccountName})
}

// right is a permission that a requester may need.
type right struct {
	verb, group, resource, namespace, name string
}

// String returns the permission in the words of an RBAC rule.
func (r right) String() string {
	text := r.verb + " " + r.resource
	if r.group != "" {
		text += "." + r.group
	}
	if r.name != "" {
		text += " " + r.name
	}
	if r.namespace != "" {
		text += " in namespace " + r.namespace
	}
	return text
}

// may reports whether a user has a permission. It sends an access review.
func (c *cluster) may(ctx context.Context, user authenticationv1.UserInfo, required right) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = slices.Clone(authorizationv1.ExtraValue(values))
	}
	review, err := c.rights.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: required.verb, Group: required.group, Resource: required.resource,
			Namespace: required.namespace, Name: required.name,
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("check whether %s may %s: %w", strings.TrimSpace(user.Username), required, err)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}

// rowPage is a page of objects as the rows of a [metav1.Table], reduced to what the checks read.
type rowPage struct {
	Metadata metav1.ListMeta `json:"metadata"`
	Rows     []struct {
		Cells  []any `json:"cells"`
		Object struct {
			Metadata struct {
				DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
			} `json:"metadata"`
		} `json:"object"`
	} `json:"rows"`
}

// rows returns a page of the objects of a resource in a namespace, or in all if it is empty. A
// row has the object's metadata only if include says so: others choose its size.
func (c *cluster) rows(
	ctx context.Context, resource schema.GroupVersionResource, namespace string, include metav1.IncludeObjectPolicy,
	options metav1.ListOptions,
) (*rowPage, error) {
	answer, err := c.api.Get().
		AbsPath("apis", resource.Group, resource.Version).Namespace(namespace).Resource(resource.Resource).
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").
		Param("includeObject", string(include)).
		SpecificallyVersionedParams(&options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).
		DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
	}
	page := &rowPage{}
	if err := json.Unmarshal(answer, page); err != nil {
		return nil, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
	}
	return page, nil
}

// names returns the names of the objects: they are the first column of every kind.
func (p *rowPage) names() []string {
	names := make([]string, 0, len(p.Rows))
	for _, row := range p.Rows {
		if len(row.Cells) > 0 {
			if name, ok := row.Cells[0].(string); ok {
				names = append(names, name)
			}
		}
	}
	return names
}
