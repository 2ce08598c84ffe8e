package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxBody is the size limit of a request: the API server accepts objects of 3 MiB, and
// sends two of them with an update.
const maxBody = 7 << 20

// smallBody is the size up to which a request is not kept waiting by large ones.
const smallBody = 256 << 10

// bodyTimeout is how long the body of a request may take to arrive. The API server
// sends it at once.
const bodyTimeout = 5 * time.Second

// statusError is an error with the response that it causes.
type statusError struct {
	code   int32
	reason metav1.StatusReason
	text   string
}

func (e *statusError) Error() string { return e.text }

// badRequest returns the error for a request that the API server does not send.
func badRequest(format string, args ...any) error {
	return &statusError{http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf(format, args...)}
}

// busy returns the error for a request that had to wait too long.
func busy(why string) error {
	return &statusError{http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, why + ": try again in a few seconds"}
}

// readReview reads an AdmissionReview, and reduces its objects to what the checks read. At
// most as many bytes are being read at the same time as reading has.
func readReview(
	ctx context.Context, reading *seats, rw http.ResponseWriter, httpRequest *http.Request,
) (*admissionv1.AdmissionReview, error) {
	if mediaType, _, err := mime.ParseMediaType(httpRequest.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return nil, badRequest("the content type must be application/json")
	}
	length := httpRequest.ContentLength
	if length > maxBody {
		return nil, tooLarge()
	}
	if length < 0 {
		length = maxBody // unknown
	}
	// Whose request it is, is not known before it is read.
	class := "small"
	if length > smallBody {
		class = "large"
	}
	release, err := reading.acquire(ctx, class, 2*length) // the decoder copies the objects
	if err != nil {
		return nil, busy("the webhook is receiving too many Configurations at the same time")
	}
	defer release()
	// A recorder in a test has no deadlines.
	err = http.NewResponseController(rw).SetReadDeadline(time.Now().Add(bodyTimeout))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, badRequest("the connection is closed")
	}
	body := make([]byte, 0, min(length+512, maxBody))
	body, err = appendAll(body, http.MaxBytesReader(rw, httpRequest.Body, maxBody))
	if _, exceeded := errors.AsType[*http.MaxBytesError](err); exceeded {
		return nil, tooLarge()
	}
	if err != nil {
		return nil, badRequest("the request did not arrive completely")
	}
	review := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(body, review); err != nil {
		return nil, badRequest("the request is not an AdmissionReview: %v", err)
	}
	if review.APIVersion != admissionv1.SchemeGroupVersion.String() || review.Kind != "AdmissionReview" || review.Request == nil {
		return nil, badRequest("the request is not an AdmissionReview of %s", admissionv1.SchemeGroupVersion)
	}
	incoming := review.Request // what others have written is not held while the request waits
	incoming.Object.Raw, incoming.OldObject.Raw = reduce(incoming.Object.Raw), reduce(incoming.OldObject.Raw)
	return review, nil
}

func tooLarge() error {
	return &statusError{http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
		fmt.Sprintf("the Configuration is too large: its old and new version are limited to %d MiB together", maxBody>>20)}
}

// appendAll is io.ReadAll into a buffer whose size is known.
func appendAll(buffer []byte, from io.Reader) ([]byte, error) {
	for {
		if len(buffer) == cap(buffer) {
			buffer = append(buffer, 0)[:len(buffer)]
		}
		n, err := from.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		if errors.Is(err, io.EOF) {
			return buffer, nil
		}
		if err != nil {
			return buffer, err
		}
	}
}
