package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/objects"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
)

// Client acts as the controller, or as a ServiceAccount. It is safe for concurrent
// use.
type Client struct {
	api *objects.Client
	// account is the ServiceAccount; empty for the controller itself.
	account types.NamespacedName
}

// NewClient returns a Client that acts as the user of an API server's configuration.
// Requests go through the HTTP client, or one of their own if it is nil.
func NewClient(config *rest.Config, transport *http.Client) (*Client, error) {
	api, err := objects.NewClient(config, transport)
	if err != nil {
		return nil, err
	}
	return &Client{api: api}, nil
}

// neverExisted is a resourceVersion that no object has: etcd's revisions start at 1,
// and the first write gets 2. An apply with it creates
// an object, because versions are compared only with existing objects, and is
// refused with 409 if the object exists.
const neverExisted = "1"

// Create applies an object that does not exist. If it exists nevertheless, it is
// updated if the claim owns it (an error is then an [ExistingError]), and left untouched
// otherwise, and the error is a Conflict.
func (c *Client) Create(ctx context.Context, want *plan.Desired, claim ownership.Claim) (objects.Answer, error) {
	created, err := c.apply(ctx, want, "", neverExisted)
	if err == nil {
		return created, nil
	}
	changed := c.classify(want, err)
	if !errors.Is(changed, ErrChanged) {
		return nil, changed
	}
	// It exists: the watch is behind, a label was removed, or the object has another owner.
	var state ownership.State
	err = c.read(ctx, want.Resource, nameOf(want), func(existing *unstructured.Unstructured) { state = ownership.Read(existing) })
	switch {
	case apierrors.IsNotFound(err), err == nil && claim.Judge(state) == ownership.Former:
		return nil, changed // it was deleted in between, or garbage collection deletes it
	case err != nil:
		return nil, c.classify(want, err)
	case !claim.Owns(state):
		return nil, ConflictError(fmt.Sprintf("%s %s", want.Kind.Kind, nameOf(want).Name), claim, state)
	}
	updated, err := c.Update(ctx, want, state.UID, "")
	if err != nil {
		return nil, &ExistingError{Err: err}
	}
	return updated, nil
}

// Update applies over the parent's object of that UID, in that resourceVersion unless it
// is empty. Fields that other clients changed are reverted.
func (c *Client) Update(ctx context.Context, want *plan.Desired, uid types.UID, version string) (objects.Answer, error) {
	updated, err := c.apply(ctx, want, uid, version)
	if err != nil {
		return nil, c.classify(want, err)
	}
	return updated, nil
}

// apply applies an object. Only if there is a UID, and so an object of the parent, it takes
// the fields of other managers.
func (c *Client) apply(ctx context.Context, want *plan.Desired, uid types.UID, version string) (objects.Answer, error) {
	body := &unstructured.Unstructured{Object: maps.Clone(want.Content)}
	if metadata, ok := body.Object["metadata"].(map[string]any); ok {
		body.Object["metadata"] = maps.Clone(metadata) // the original stays as it is
	}
	body.SetUID(uid)
	body.SetResourceVersion(version)
	applied, err := c.api.Apply(ctx, want.Resource, nameOf(want), body.Object,
		metav1.ApplyOptions{FieldManager: v0.FieldManagerController, Force: uid != ""})
	return applied, redact(want.Resource, err)
}

func nameOf(want *plan.Desired) types.NamespacedName {
	body := &unstructured.Unstructured{Object: want.Content}
	return types.NamespacedName{Namespace: body.GetNamespace(), Name: body.GetName()}
}

// read reads an object and calls a function with it, as [objects.Answer.Read] does.
func (c *Client) read(
	ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName, use func(*unstructured.Unstructured),
) error {
	object, err := c.api.Get(ctx, resource, name)
	if err != nil {
		return redact(resource, err)
	}
	return object.Read(use)
}
