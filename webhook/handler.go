package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v0 "akri.sh/akri/api/v0"
)

// Path is where the API server finds the webhook.
const Path = "/admission/configurations"

// The API server sends its timeout with each request. The webhook responds a margin
// earlier, because a late response is worth nothing.
const (
	defaultTimeout = 10 * time.Second // the API server's default
	timeoutMargin  = time.Second
	minTimeout     = 500 * time.Millisecond
)

// maxConcurrent limits the reviews in progress; further ones wait. That is enough
// for the authors of Configurations, and limits the resources that anyone else who
// reaches the port can use.
const maxConcurrent = 16

// reviewer reviews requests.
type reviewer interface {
	review(context.Context, request) []Finding
}

// Handler answers the API server's AdmissionReviews of Configurations.
// controller-runtime limits the size of bodies and handles HTTP and the encoding.
func Handler(chain *Chain) http.Handler { return handlerFor(chain) }

func handlerFor(r reviewer) http.Handler {
	running := semaphore.NewWeighted(maxConcurrent)
	return &admission.Webhook{
		Handler: admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
			if timeout, ok := ctx.Value(timeoutKey{}).(time.Duration); ok {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			if running.Acquire(ctx, 1) != nil {
				return deny(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
					"too many Configurations are being validated at the same time: try again")
			}
			defer running.Release(1)
			return respond(ctx, r, req)
		}),
		WithContextFunc: func(ctx context.Context, httpRequest *http.Request) context.Context {
			return context.WithValue(ctx, timeoutKey{}, timeoutOf(httpRequest))
		},
	}
}

// timeoutKey is the context key of the timeout.
type timeoutKey struct{}

// timeoutOf returns how long a review may take.
func timeoutOf(httpRequest *http.Request) time.Duration {
	timeout, err := time.ParseDuration(httpRequest.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		timeout = defaultTimeout
	}
	return max(timeout-timeoutMargin, minTimeout)
}

// respond reviews a request. An internal failure denies it with a reason.
func respond(ctx context.Context, r reviewer, req admission.Request) (response admission.Response) {
	defer func() {
		if reason := recover(); reason != nil {
			log.FromContext(ctx).Error(fmt.Errorf("panic: %v", reason), "The admission webhook failed", "stack", string(debug.Stack()))
			response = deny(http.StatusInternalServerError, metav1.StatusReasonInternalError,
				"Akri's admission webhook failed internally and could not validate this Configuration; its log has the details. "+
					"Please report it; docs/admission.md explains how to continue without the webhook")
		}
	}()
	decoded, err := decodeRequest(req)
	if err != nil {
		return deny(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	return responseFor(r.review(ctx, decoded))
}

func decodeRequest(req admission.Request) (request, error) {
	decoded := request{user: req.UserInfo, configuration: &v0.Configuration{}}
	if err := json.Unmarshal(req.Object.Raw, decoded.configuration); err != nil {
		return request{}, fmt.Errorf("decode the Configuration: %w", err)
	}
	decoded.configuration.Namespace = req.Namespace // some clients do not send it
	if req.Operation == admissionv1.Update {
		decoded.old = &v0.Configuration{}
		if err := json.Unmarshal(req.OldObject.Raw, decoded.old); err != nil {
			*decoded.old = v0.Configuration{} // whatever it was, the new one replaces it
		}
	}
	return decoded, nil
}

// responseFor returns the response to a request with these findings.
func responseFor(findings []Finding) admission.Response {
	message := denials(findings)
	if message == "" {
		return admission.Allowed("").WithWarnings(warnings(findings)...)
	}
	code, reason := int32(http.StatusUnprocessableEntity), metav1.StatusReasonInvalid
	if slices.ContainsFunc(findings, func(f Finding) bool { return f.Level == Forbid }) {
		code, reason = http.StatusForbidden, metav1.StatusReasonForbidden
	}
	return deny(code, reason, message).WithWarnings(warnings(findings)...)
}

func deny(code int32, reason metav1.StatusReason, message string) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Allowed: false,
		Result:  &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message},
	}}
}
