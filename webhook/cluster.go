package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"akri.sh/akri/controller/apply"
)

// cluster is the API server as the checks ask it. Nothing can be written by it.
type cluster struct {
	mapper  meta.RESTMapper
	clients *apply.Clients
	rights  authorizationclient.SubjectAccessReviewInterface
}

func newCluster(options Options) (*cluster, error) {
	config := guarded(options.Config)
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for dry runs: %w", err)
	}
	clients, err := apply.NewClients(config, transport)
	if err != nil {
		return nil, err
	}
	rights, err := authorizationclient.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("make a client for access reviews: %w", err)
	}
	return &cluster{mapper: options.Mapper, clients: clients, rights: rights.SubjectAccessReviews()}, nil
}

// guarded reaches the API server in the same way, and cannot write.
func guarded(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(apply.DryRunOnly)
	config.QPS = -1 // each admission bounds itself
	return config
}

// client acts as whoever will apply the Configuration's objects.
func (c *cluster) client(r *review) (*apply.Client, error) {
	return c.clients.As(types.NamespacedName{Namespace: r.configuration.Namespace, Name: r.configuration.Spec.ServiceAccountName})
}

// right is what a requester may be asked to hold.
type right struct {
	verb, group, resource, namespace, name string
}

// String is what a person would look for in a rule of RBAC.
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

// may asks the API server whether a user holds a right.
func (c *cluster) may(ctx context.Context, user authenticationv1.UserInfo, right right) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = slices.Clone(authorizationv1.ExtraValue(values))
	}
	answer, err := c.rights.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: right.verb, Group: right.group, Resource: right.resource, Namespace: right.namespace, Name: right.name,
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask whether %s may %s: %w", strings.TrimSpace(user.Username), right, err)
	}
	return answer.Status.Allowed && !answer.Status.Denied, nil
}
