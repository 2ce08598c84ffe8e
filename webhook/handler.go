package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v0 "akri.sh/akri/api/v0"
)

// Path is where the API server finds the webhook.
const Path = "/admission/configurations"

// The API server says how long it waits; an answer that comes a little before is
// worth more than none. defaultPatience is the API server's own default.
const (
	defaultPatience = 10 * time.Second
	margin          = time.Second
	leastPatience   = 500 * time.Millisecond
)

// mostAtOnce bounds how many questions are worked on at the same time; the others
// wait. People write Configurations, so there is room; whoever else finds the port
// cannot take more.
const mostAtOnce = 16

// judge decides about one request.
type judge interface {
	judge(context.Context, *review) []Finding
}

// Handler answers the API server's questions about Configurations. Bodies are
// bounded, and HTTP and the form of questions and answers handled, by
// controller-runtime.
func Handler(chain *Chain) http.Handler { return handlerOf(chain) }

func handlerOf(judge judge) http.Handler {
	seats := make(chan struct{}, mostAtOnce)
	return &admission.Webhook{
		Handler: admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
			if limit, ok := ctx.Value(patienceKey{}).(time.Duration); ok {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, limit)
				defer cancel()
			}
			select {
			case seats <- struct{}{}:
				defer func() { <-seats }()
				return answer(ctx, judge, request)
			case <-ctx.Done():
				return deny(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many Configurations are being written at once: try again")
			}
		}),
		WithContextFunc: func(ctx context.Context, request *http.Request) context.Context {
			return context.WithValue(ctx, patienceKey{}, timeFor(request))
		},
	}
}

type patienceKey struct{}

// timeFor is how long an answer may take.
func timeFor(request *http.Request) time.Duration {
	asked, err := time.ParseDuration(request.URL.Query().Get("timeout"))
	if err != nil || asked <= 0 {
		asked = defaultPatience
	}
	return max(asked-margin, leastPatience)
}

// answer decides. Whatever goes wrong in here is a denial with a reason.
func answer(ctx context.Context, judge judge, request admission.Request) (response admission.Response) {
	defer func() {
		if p := recover(); p != nil {
			log.FromContext(ctx).Error(fmt.Errorf("panic: %v", p), "a mistake in the admission webhook", "stack", string(debug.Stack()))
			response = deny(http.StatusInternalServerError, metav1.StatusReasonInternalError,
				"the admission webhook of Akri has made a mistake and cannot tell whether this Configuration is well; its log has the details. Please report it; docs/admission.md says how to go on without the webhook")
		}
	}()
	review, err := read(request)
	if err != nil {
		return deny(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	return conclude(judge.judge(ctx, review))
}

// read takes the question apart.
func read(request admission.Request) (*review, error) {
	r := &review{user: request.UserInfo, configuration: &v0.Configuration{}}
	if err := json.Unmarshal(request.Object.Raw, r.configuration); err != nil {
		return nil, fmt.Errorf("the Configuration cannot be read: %w", err)
	}
	r.configuration.Namespace = request.Namespace // not set yet in what some clients send
	if request.Operation == admissionv1.Update {
		r.old = &v0.Configuration{}
		if err := json.Unmarshal(request.OldObject.Raw, r.old); err != nil {
			*r.old = v0.Configuration{} // whatever it was, the new one replaces it
		}
	}
	return r, nil
}

// conclude makes an answer of the findings.
func conclude(findings []Finding) admission.Response {
	text := denials(findings)
	if text == "" {
		return admission.Allowed("").WithWarnings(warnings(findings)...)
	}
	code, reason := int32(http.StatusUnprocessableEntity), metav1.StatusReasonInvalid
	if slices.ContainsFunc(findings, func(f Finding) bool { return f.Level == Forbid }) {
		code, reason = http.StatusForbidden, metav1.StatusReasonForbidden
	}
	return deny(code, reason, text).WithWarnings(warnings(findings)...)
}

func deny(code int32, reason metav1.StatusReason, message string) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Allowed: false,
		Result:  &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message},
	}}
}
