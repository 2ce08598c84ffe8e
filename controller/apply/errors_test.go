package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// answering answers all requests of a method with an error, in place of the API server.
func (w *world) answering(method string, status metav1.Status) *Client {
	w.t.Helper()
	body, err := json.Marshal(status)
	if err != nil {
		w.t.Fatal(err)
	}
	config := rest.CopyConfig(w.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method != method {
				return next.RoundTrip(request)
			}
			return &http.Response{
				StatusCode: int(status.Code), Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(bytes.NewReader(body)), Request: request,
			}, nil
		})
	})
	client, err := NewClient(config, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

// Webhooks and policies, which answer with any code, quote what they deny.
func TestNoAnswerAboutASecretIsQuoted(t *testing.T) {
	w := newWorld(t)
	const hidden = "hunter2"
	content := w.content("secret", "")
	delete(content, "data")
	content["kind"], content["stringData"] = "Secret", map[string]any{"password": "x"}
	want := &plan.Desired{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Resource: secrets, Content: content}
	claim := ownership.Claim{Parent: parent}
	created, err := w.Create(t.Context(), want, claim)
	if err != nil {
		t.Fatal(err)
	}
	ref := inventory.Ref{Kind: "Secret", Namespace: w.namespace, Name: "secret"}
	requests := map[string]struct {
		method string
		send   func(*Client) error
	}{
		"create": {http.MethodPatch, func(c *Client) error { _, err := c.Create(t.Context(), want, claim); return err }},
		"update": {http.MethodPatch, func(c *Client) error { _, err := c.Update(t.Context(), want, uidOf(t, created), ""); return err }},
		"try":    {http.MethodPatch, func(c *Client) error { return c.Try(t.Context(), want) }},
		"read":   {http.MethodGet, func(c *Client) error { _, err := c.Create(t.Context(), want, claim); return err }},
		"delete": {http.MethodDelete, func(c *Client) error {
			return c.Delete(t.Context(), secrets, ref.NamespacedName(), uidOf(t, created), versionOf(t, created))
		}},
		"delete if": {http.MethodGet, func(c *Client) error {
			_, err := c.DeleteIf(t.Context(), secrets, ref.NamespacedName(), claim.Owns)
			return err
		}},
		"take over": {http.MethodGet, func(c *Client) error {
			_, _, err := c.Do(t.Context(), plan.Step{
				Ref: ref, Action: plan.Update, TakeOver: true, Desired: want, Claim: claim, UID: uidOf(t, created),
			})
			return err
		}},
		"managers": {http.MethodGet, func(c *Client) error {
			_, err := c.Managers(t.Context(), secrets, ref.NamespacedName(), content)
			return err
		}},
	}
	for name, answer := range map[string]metav1.Status{
		"a webhook's denial": {Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: `admission webhook "x.example.com" denied the request: ` + hidden},
		"a denial that quotes the authorizer": {Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: `admission webhook "x.example.com" denied the request: secrets "x" is forbidden: User "x" cannot create resource ` + hidden},
		"a policy's denial": {Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: `secrets "secret" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'y' denied request: ` + hidden},
		"conflict": {Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: hidden},
		"invalid": {Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: hidden,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "data[not a key]", Message: hidden}}}},
		"too many requests": {Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, Message: hidden},
		"internal error":    {Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: hidden},
		"storage error":     {Code: http.StatusInternalServerError, Message: "the leader is " + hidden},
		"unavailable":       {Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: hidden},
		"unknown":           {Code: http.StatusTeapot, Message: hidden},
	} {
		for what, request := range requests {
			t.Run(what+", "+name, func(t *testing.T) {
				answer.TypeMeta, answer.Status = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, metav1.StatusFailure
				if answer.Details == nil {
					answer.Details = &metav1.StatusDetails{}
				}
				answer.Details.Name = "secret"
				err := request.send(w.answering(request.method, answer))
				if err == nil {
					t.Fatal("no error")
				}
				found := problem.At("spec.x", err)
				for _, text := range []string{err.Error(), found.Error()} {
					if strings.Contains(text, hidden) {
						t.Error(text)
					}
				}
				if strings.Contains(name, "denial") && !strings.Contains(found.Error(), " denied ") {
					t.Errorf("it is not said who denies it: %s", found.Error())
				}
				if name == "invalid" && !strings.Contains(err.Error(), "data[not a key]") {
					t.Errorf("the field is not named: %v", err)
				}
			})
		}
	}
}

// What the authorizer and quotas say quotes no object, and says what to do.
func TestMissingRightsToSecretsAreNamed(t *testing.T) {
	w := newWorld(t)
	config := rest.CopyConfig(w.config)
	config.Impersonate.UserName = "nobody"
	client, err := NewClient(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	content := w.content("secret", "")
	content["kind"] = "Secret"
	want := &plan.Desired{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Resource: secrets, Content: content}
	_, err = client.Create(t.Context(), want, ownership.Claim{Parent: parent})
	const missing = `User "nobody" cannot patch resource "secrets" in API group "" in the namespace `
	if err == nil || !strings.Contains(err.Error(), missing) || strings.Contains(err.Error(), "left out") {
		t.Errorf("got %v, want %s", err, missing)
	}
	quota := apierrors.NewForbidden(secrets.GroupResource(), "secret",
		errors.New("exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1")).ErrStatus
	quota.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	_, err = w.answering(http.MethodPatch, quota).Create(t.Context(), want, ownership.Claim{Parent: parent})
	if err == nil || !strings.Contains(err.Error(), quota.Message) {
		t.Errorf("got %v, want %s", err, quota.Message)
	}
}

// The owner of an object is named to those of its namespace only.
func TestConflictsNameOwnersOfTheSameNamespace(t *testing.T) {
	parent := func(namespace string) ownership.Parent {
		return ownership.Parent{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "cam"}}
	}
	for name, tc := range map[string]struct {
		state ownership.State
		named bool
	}{
		"the same namespace": {ownership.State{Owner: "1", Confirmed: true, Parent: parent("plant")}, true},
		"another one":        {ownership.State{Owner: "1", Confirmed: true, Parent: parent("office")}, false},
		"labels of anybody":  {ownership.State{Owner: "1", Parent: parent("plant")}, false},
		"no owner":           {ownership.State{Confirmed: true, Parent: parent("plant")}, false},
	} {
		err := ConflictError("Service x", ownership.Claim{Parent: parent("plant")}, tc.state)
		if strings.Contains(err.Error(), "cam") != tc.named || err.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
