package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// The API server sends its timeout with each request. The webhook responds a margin
// earlier, because a late response is worth nothing.
const (
	defaultTimeout = 10 * time.Second // the API server's default
	timeoutMargin  = time.Second
	minTimeout     = 500 * time.Millisecond
	maxTimeout     = 29 * time.Second // the API server waits for 30 s at most
)

// maxReviews is how many requests are read and reviewed at the same time. The others wait, in
// the order in which they came, with nothing in memory but a connection and the UID. It is four,
// because four of the most expensive Configurations must fit into the memory limit in
// config/webhook, 256 MiB. 50 MiB of these the process takes in any case, which leaves 50 MiB for
// each: a spec of maxSpecBytes and the one that it replaces, decoded (10 MiB each), the templates
// compiled (up to 10 MiB), and the objects that are held (heldBytes of each of four lists).
// TestHostileUser measures it. More would not be faster: each has four requests in flight.
const maxReviews = 4

// retryAfter is how long clients wait that were told to try again. client-go does so by itself.
const retryAfter = time.Second

// reviewer reviews requests.
type reviewer interface {
	review(context.Context, admissionRequest) []Finding
}

// Handler answers the API server's AdmissionReviews of Configurations.
func Handler(chain *Chain) http.Handler { return handlerFor(chain) }

func handlerFor(r reviewer) http.Handler {
	return &reviewHandler{reviewer: r, reviews: semaphore.NewWeighted(maxReviews)}
}

// reviewHandler limits how many requests are reviewed at the same time, and how long they wait.
type reviewHandler struct {
	reviewer
	reviews *semaphore.Weighted
}

// ServeHTTP responds with an AdmissionReview to every request.
func (h *reviewHandler) ServeHTTP(rw http.ResponseWriter, httpRequest *http.Request) {
	timeout := timeoutOf(httpRequest)
	ctx, cancel := context.WithTimeout(httpRequest.Context(), timeout)
	defer cancel()
	answer := &admissionv1.AdmissionReview{}
	answer.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	body := http.MaxBytesReader(rw, httpRequest.Body, maxBody)
	if uid, rest, err := readUID(body); err != nil {
		answer.Response = denyError(err)
	} else {
		answer.Response = h.admit(ctx, timeout/2, rw, rest)
		answer.Response.UID = uid // without it, the API server does not accept the response
	}
	rw.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(rw).Encode(answer); err != nil {
		log.FromContext(ctx).V(1).Info("The response was not sent", "err", err.Error())
	}
}

// timeoutOf returns how long a review may take.
func timeoutOf(httpRequest *http.Request) time.Duration {
	timeout, err := time.ParseDuration(httpRequest.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		timeout = defaultTimeout
	}
	return min(max(timeout-timeoutMargin, minTimeout), maxTimeout)
}

// admit waits for the request's turn, but leaves time for its review: half of it. Then it reads
// the rest of the request, and reviews it. An internal failure denies it with a reason.
func (h *reviewHandler) admit(
	ctx context.Context, wait time.Duration, rw http.ResponseWriter, body io.Reader,
) (response *admissionv1.AdmissionResponse) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := h.reviews.Acquire(waiting, 1); err != nil {
		busy := deny(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
			"too many Configurations are being validated at the same time: try again in a few seconds")
		busy.Result.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(retryAfter.Seconds())}
		return busy
	}
	defer h.reviews.Release(1)
	defer func() {
		if reason := recover(); reason != nil {
			log.FromContext(ctx).Error(fmt.Errorf("panic: %v", reason), "The admission webhook failed", "stack", string(debug.Stack()))
			response = deny(http.StatusInternalServerError, metav1.StatusReasonInternalError,
				"Akri's admission webhook failed internally and could not validate this Configuration; its log has the details. "+
					"Please report it; docs/admission.md explains how to continue without the webhook")
		}
	}()
	request, err := readRequest(rw, body)
	if err != nil {
		return denyError(err)
	}
	return responseFor(h.review(ctx, request))
}

// responseFor returns the response to a request with these findings.
func responseFor(findings []Finding) *admissionv1.AdmissionResponse {
	highest := Warn
	for _, found := range findings {
		highest = max(highest, found.Level)
	}
	response := &admissionv1.AdmissionResponse{Allowed: true, Result: &metav1.Status{Code: http.StatusOK}}
	switch highest {
	case Forbid:
		response = deny(http.StatusForbidden, metav1.StatusReasonForbidden, denials(findings))
	case Deny:
		response = deny(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, denials(findings))
	}
	response.Warnings = warnings(findings)
	return response
}

// denyError returns the response to a request that is not reviewed.
func denyError(err error) *admissionv1.AdmissionResponse {
	if _, exceeded := errors.AsType[*http.MaxBytesError](err); exceeded {
		err = tooLarge("the Configuration is too large: its old and new version are limited to %d MiB together", maxBody>>20)
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return &admissionv1.AdmissionResponse{Result: &status.ErrStatus}
	}
	return deny(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
}
