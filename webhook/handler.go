package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v0 "akri.sh/akri/api/v0"
)

// The API server sends its timeout with each request. The webhook responds a margin
// earlier, because a late response is worth nothing.
const (
	defaultTimeout = 10 * time.Second // the API server's default
	timeoutMargin  = time.Second
	minTimeout     = 500 * time.Millisecond
	maxTimeout     = 29 * time.Second // the API server waits for 30 s at most
)

// What all requests together may hold in memory, in bytes, and what the requests of
// one user may. With the memory for renderings (renderings.go) and some 50 MiB that the
// process needs in any case, it is less than the limit in config/webhook.
const (
	maxReadingBytes        = 16 << 20 // of requests that are being read
	maxLargeReadingBytes   = 14 << 20 // of the large ones among them
	maxWaitingBytes        = 16 << 20 // of requests that wait for a review
	maxWaitingBytesPerUser = 8 << 20
	minWaitingBytes        = 256 << 10 // one user has up to 32 requests that wait
	maxReviewBytes         = 96 << 20  // of decoded and compiled Configurations
	maxReviewBytesPerUser  = 64 << 20
	// minReviewBytes limits the number of reviews: one user has up to 16 at a time.
	minReviewBytes = 4 << 20
	// maxDecodedBytes is the size limit of one Configuration, see decodedBytes.
	maxDecodedBytes = 8 << 20
	// maxSpecBytes is the size limit of a spec as JSON: the controller keeps all of them in
	// memory, and each agent those of its handlers.
	maxSpecBytes = 256 << 10
)

// reviewer reviews requests.
type reviewer interface {
	review(context.Context, admissionRequest) []Finding
}

// Handler answers the API server's AdmissionReviews of Configurations.
func Handler(chain *Chain) http.Handler { return handlerFor(chain) }

func handlerFor(r reviewer) http.Handler {
	return &reviewHandler{
		reviewer: r,
		reading:  newSeats(maxReadingBytes, maxLargeReadingBytes),
		waiting:  newSeats(maxWaitingBytes, maxWaitingBytesPerUser),
		reviews:  newSeats(maxReviewBytes, maxReviewBytesPerUser),
	}
}

// reviewHandler limits what requests hold in memory, from the first byte to the response.
type reviewHandler struct {
	reviewer
	reading, waiting, reviews *seats
}

// ServeHTTP responds with an AdmissionReview to every request.
func (h *reviewHandler) ServeHTTP(rw http.ResponseWriter, httpRequest *http.Request) {
	ctx, cancel := context.WithTimeout(httpRequest.Context(), timeoutOf(httpRequest))
	defer cancel()
	answer := &admissionv1.AdmissionReview{}
	answer.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	review, err := readReview(ctx, h.reading, rw, httpRequest)
	if err != nil {
		answer.Response = denyError(err)
	} else {
		answer.Response = h.respond(ctx, review)
	}
	rw.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(rw).Encode(answer); err != nil {
		log.FromContext(ctx).V(1).Info("The response was not sent", "err", err.Error())
	}
}

// respond returns the response to a review.
func (h *reviewHandler) respond(ctx context.Context, review *admissionv1.AdmissionReview) *admissionv1.AdmissionResponse {
	incoming := review.Request
	response := h.admit(ctx, incoming)
	response.UID = incoming.UID
	return response
}

// admit waits until the user's request may be reviewed, and reviews it.
func (h *reviewHandler) admit(ctx context.Context, incoming *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	objects := int64(len(incoming.Object.Raw) + len(incoming.OldObject.Raw))
	user := tenant(incoming.UserInfo)
	leave, ok := h.waiting.tryAcquire(user, max(minWaitingBytes, objects))
	if !ok {
		return denyError(busy("too many of your Configurations are waiting for validation"))
	}
	defer leave()
	decoded := decodedBytes(incoming.Object.Raw)
	if decoded > maxDecodedBytes {
		return denyError(&statusError{http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, fmt.Sprintf(
			"spec: the Configuration has too many fields: decoded, it would take %d MiB, and the limit is %d MiB; "+
				"use fewer or smaller templates, or several Configurations", decoded>>20, maxDecodedBytes>>20)})
	}
	if size := specBytes(incoming.Object.Raw); size > maxSpecBytes && size > specBytes(incoming.OldObject.Raw) {
		return denyError(&statusError{http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, fmt.Sprintf(
			"spec: it has %d KiB of JSON, and the limit is %d KiB; "+
				"put large values into a ConfigMap that the brokers mount, or use several Configurations", size>>10, maxSpecBytes>>10)})
	}
	compiled := compiledBytes(incoming.Object.Raw, decoded)
	old := decodedBytes(incoming.OldObject.Raw)
	if old > maxDecodedBytes {
		incoming.OldObject.Raw, old = nil, 0 // it was stored without the webhook
	}
	release, err := h.reviews.acquire(ctx, user, max(minReviewBytes, objects+decoded+compiled+old))
	if err != nil {
		return denyError(busy("too many Configurations are being validated at the same time"))
	}
	defer release()
	leave()
	return respond(ctx, h.reviewer, incoming)
}

// tenant returns the key for limits per user. All ServiceAccounts of a namespace share
// one: a user who may create ServiceAccounts can have any number of them.
func tenant(user authenticationv1.UserInfo) string {
	if namespaced, found := strings.CutPrefix(user.Username, "system:serviceaccount:"); found {
		namespace, _, _ := strings.Cut(namespaced, ":")
		return "system:serviceaccounts:" + namespace
	}
	return user.Username
}

// timeoutOf returns how long a review may take.
func timeoutOf(httpRequest *http.Request) time.Duration {
	timeout, err := time.ParseDuration(httpRequest.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		timeout = defaultTimeout
	}
	return min(max(timeout-timeoutMargin, minTimeout), maxTimeout)
}

// respond reviews a request. An internal failure denies it with a reason.
func respond(ctx context.Context, r reviewer, incoming *admissionv1.AdmissionRequest) (response *admissionv1.AdmissionResponse) {
	defer func() {
		if reason := recover(); reason != nil {
			log.FromContext(ctx).Error(fmt.Errorf("panic: %v", reason), "The admission webhook failed", "stack", string(debug.Stack()))
			response = deny(http.StatusInternalServerError, metav1.StatusReasonInternalError,
				"Akri's admission webhook failed internally and could not validate this Configuration; its log has the details. "+
					"Please report it; docs/admission.md explains how to continue without the webhook")
		}
	}()
	decoded, err := decodeRequest(incoming)
	if err != nil {
		return denyError(badRequest("%v", err))
	}
	return responseFor(r.review(ctx, decoded))
}

// decodeRequest decodes a request and drops its encoded objects.
func decodeRequest(incoming *admissionv1.AdmissionRequest) (admissionRequest, error) {
	decoded := admissionRequest{user: incoming.UserInfo, configuration: &v0.Configuration{}}
	if err := json.Unmarshal(incoming.Object.Raw, decoded.configuration); err != nil {
		return admissionRequest{}, fmt.Errorf("decode the Configuration: %w", err)
	}
	decoded.configuration.Namespace = incoming.Namespace // some clients do not send it
	if incoming.Operation == admissionv1.Update {
		decoded.old = &v0.Configuration{}
		if err := json.Unmarshal(incoming.OldObject.Raw, decoded.old); err != nil {
			*decoded.old, decoded.oldUnread = v0.Configuration{}, true // whatever it was, the new one replaces it
		}
		decoded.old.Namespace, decoded.old.Name = incoming.Namespace, incoming.Name
	}
	incoming.Object.Raw, incoming.OldObject.Raw = nil, nil
	return decoded, nil
}

// responseFor returns the response to a request with these findings.
func responseFor(findings []Finding) *admissionv1.AdmissionResponse {
	highest := Warn
	for _, found := range findings {
		highest = max(highest, found.Level)
	}
	response := &admissionv1.AdmissionResponse{Allowed: true, Result: &metav1.Status{Code: http.StatusOK}}
	switch highest {
	case Busy:
		response = deny(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, denials(findings))
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
	if status, ok := errors.AsType[*statusError](err); ok {
		return deny(status.code, status.reason, status.text)
	}
	return deny(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
}

func deny(code int32, reason metav1.StatusReason, message string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{
		Allowed: false,
		Result:  &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message},
	}
}
