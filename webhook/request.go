package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

const (
	// maxBody is the size limit of a request: the API server accepts objects of 3 MiB, and
	// sends two of them with an update.
	maxBody = 7 << 20
	// maxSpecBytes is the size limit of a spec as JSON: the controller keeps all of them in
	// memory, and each agent those of its handlers. Decoded, it takes up to forty times as much.
	maxSpecBytes = 256 << 10
	// maxUIDBytes is how much of a request is read to find its UID, which the API server
	// writes first.
	maxUIDBytes = 4 << 10
	// bodyTimeout is how long the body of a request may take to arrive. The API server
	// sends it at once.
	bodyTimeout = 5 * time.Second
)

// admissionRequest is one request to create or update a Configuration.
type admissionRequest struct {
	user          authenticationv1.UserInfo
	configuration *v0.Configuration // its metadata is only its namespace, name and UID
	old           *v0.Configuration // nil on create; its metadata is only its namespace and name
	// oldUnread is set if the old one could not be read, and is empty.
	oldUnread bool
}

// unchanged reports whether the request changes nothing that the checks read. An
// invalid spec that was stored while the webhook was unavailable must not block other
// changes, and deletion must always be possible.
func (r admissionRequest) unchanged() bool {
	return r.old != nil && equality.Semantic.DeepEqual(r.old.Spec, r.configuration.Spec)
}

// sentReview is an AdmissionReview, reduced to what the checks read.
type sentReview struct {
	metav1.TypeMeta
	Request *struct {
		Operation admissionv1.Operation     `json:"operation"`
		Namespace string                    `json:"namespace"`
		UserInfo  authenticationv1.UserInfo `json:"userInfo"`
		Object    *sentConfiguration        `json:"object"`
		OldObject *sentConfiguration        `json:"oldObject"`
	} `json:"request"`
}

// sentConfiguration is a Configuration, reduced to what the checks read. Others write the rest,
// and as much as they want: agents and the controller the status, and everybody who may write
// either the managed fields.
type sentConfiguration struct {
	Metadata struct {
		Name string    `json:"name"`
		UID  types.UID `json:"uid"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

// decode returns the Configuration in a namespace.
func (s *sentConfiguration) decode(namespace string) (*v0.Configuration, error) {
	configuration := &v0.Configuration{}
	configuration.Namespace, configuration.Name, configuration.UID = namespace, s.Metadata.Name, s.Metadata.UID
	if s.Spec == nil {
		return configuration, nil
	}
	if err := json.Unmarshal(s.Spec, &configuration.Spec); err != nil {
		return nil, fmt.Errorf("decode the Configuration: %w", err)
	}
	return configuration, nil
}

// readUID reads the UID of a request's AdmissionReview, and returns the whole body.
func readUID(body io.Reader) (types.UID, io.Reader, error) {
	var read bytes.Buffer
	tokens := json.NewDecoder(io.TeeReader(io.LimitReader(body, maxUIDBytes), &read))
	var before json.Token
	for {
		token, err := tokens.Token()
		if err != nil {
			return "", nil, fmt.Errorf("the request is not an AdmissionReview: it has no UID: %w", err)
		}
		if uid, ok := token.(string); ok && before == "uid" {
			return types.UID(uid), io.MultiReader(&read, body), nil
		}
		before = token
	}
}

// readRequest reads the rest of a request.
func readRequest(rw http.ResponseWriter, body io.Reader) (admissionRequest, error) {
	// A recorder in a test has no deadlines.
	err := http.NewResponseController(rw).SetReadDeadline(time.Now().Add(bodyTimeout))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return admissionRequest{}, fmt.Errorf("the connection is closed: %w", err)
	}
	review := &sentReview{}
	if err := json.NewDecoder(body).Decode(review); err != nil {
		return admissionRequest{}, fmt.Errorf("the request is not an AdmissionReview: %w", err)
	}
	sent := review.Request
	if review.GroupVersionKind() != admissionv1.SchemeGroupVersion.WithKind("AdmissionReview") || sent == nil || sent.Object == nil {
		return admissionRequest{}, fmt.Errorf("the request is not an AdmissionReview of %s with an object", admissionv1.SchemeGroupVersion)
	}
	r := admissionRequest{user: sent.UserInfo}
	stored := 0
	if sent.Operation == admissionv1.Update && sent.OldObject != nil {
		stored = len(sent.OldObject.Spec)
		if r.old, err = sent.OldObject.decode(sent.Namespace); err != nil {
			r.old, r.oldUnread = &v0.Configuration{}, true // whatever it was, the new one replaces it
		}
	}
	if size := len(sent.Object.Spec); size > maxSpecBytes && size > stored {
		return admissionRequest{}, tooLarge("spec: it has %d KiB of JSON, and the limit is %d KiB; "+
			"put large values into a ConfigMap that the brokers mount, or use several Configurations", size>>10, maxSpecBytes>>10)
	}
	r.configuration, err = sent.Object.decode(sent.Namespace)
	return r, err
}

func tooLarge(format string, args ...any) error {
	result := deny(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, fmt.Sprintf(format, args...)).Result
	return &apierrors.StatusError{ErrStatus: *result}
}

// deny returns the response that denies a request.
func deny(code int32, reason metav1.StatusReason, message string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{
		Result: &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message},
	}
}
