package problem

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"akri.sh/akri/internal/text"
)

// maxAnswer bounds how many bytes of an error of the API server a problem repeats.
const maxAnswer = 1000

// unavailable reports whether an error says nothing about the request: the API server
// could not be reached, did not answer in time, or could not do its work. That
// includes an admission webhook that the API server cannot reach.
func unavailable(err error) bool {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return unavailableStatus(answer.Status())
	}
	if _, ok := errors.AsType[net.Error](err); ok { // includes what an HTTP client returns without an answer
		return true
	}
	for _, known := range []error{io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// unavailableStatus is [unavailable] for an answer of the API server.
func unavailableStatus(status metav1.Status) bool {
	switch {
	case status.Code == http.StatusTooManyRequests, status.Code == http.StatusRequestTimeout:
		return true
	case status.Code < http.StatusInternalServerError:
		return false
	case status.Code == http.StatusInternalServerError && status.Reason == metav1.StatusReasonUnknown:
		return storage.MatchString(status.Message) // other such answers are about the object
	}
	return true
}

// storage matches what the API server says if etcd does not answer.
var storage = regexp.MustCompile(`timed out|deadline exceeded|leader|code = Unavailable|connection re`)

// describeUnavailable returns the text of an error of [unavailable], without what
// differs at each attempt, such as port numbers.
func describeUnavailable(err error) string {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		message := answer.Status().Message
		if redacted, ok := errors.AsType[*Redacted](err); ok {
			message = redacted.Text
		}
		return "the API server cannot process the request now: " + text.Truncate(message, maxAnswer)
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return "the API server does not answer: " + text.Truncate(err.Error(), maxAnswer)
}
