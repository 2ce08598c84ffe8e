package problem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
)

// An error that says nothing about the object has a reason of its own, wherever it was
// wrapped, and a message that is the same at each attempt.
func TestUnavailable(t *testing.T) {
	const lost, busy = "does not answer: ", "cannot process the request now: "
	pods := schema.GroupResource{Resource: "pods"}
	port := 40000
	dial := func(err error) error { // as an HTTP client returns it
		port++
		from := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: port}
		return &url.Error{Op: "Patch", URL: "https://10.96.0.1/api", Err: &net.OpError{Op: "read", Net: "tcp", Source: from, Err: err}}
	}
	server := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: message}}
	}
	for name, tc := range map[string]struct {
		err  func() error
		want string // "" if the error is about the object
	}{
		"connection refused": {func() error { return dial(syscall.ECONNREFUSED) }, lost + "connection refused"},
		"connection reset":   {func() error { return dial(os.NewSyscallError("read", syscall.ECONNRESET)) }, lost + "connection reset by peer"},
		"hung up":            {func() error { return &url.Error{Op: "Patch", Err: io.EOF} }, lost + "EOF"},
		"no answer in time":  {func() error { return context.DeadlineExceeded }, lost + "context deadline exceeded"},
		"discovery": {
			func() error { return fmt.Errorf("look up the resource: %w", dial(io.ErrUnexpectedEOF)) }, lost + "unexpected EOF",
		},
		"too many requests": {func() error { return apierrors.NewTooManyRequests("slow down", 1) }, busy + "slow down"},
		"overloaded":        {func() error { return apierrors.NewServiceUnavailable("overloaded") }, busy + "overloaded"},
		"timeout": {
			func() error { return apierrors.NewTimeoutError("the request took too long", 1) },
			busy + "Timeout: the request took too long",
		},
		"webhook down": {func() error { return apierrors.NewInternalError(errors.New("failed calling webhook")) },
			busy + "Internal error occurred: failed calling webhook"},
		"etcd down": {func() error { return server(http.StatusInternalServerError, "", "etcdserver: request timed out") },
			busy + "etcdserver: request timed out"},
		"etcd refuses": {func() error { return server(http.StatusInternalServerError, "", "etcdserver: request is too large") }, ""},
		"unknown field": {func() error {
			return server(http.StatusInternalServerError, "", ".dat: field not declared in schema")
		}, ""},
		"invalid":   {func() error { return apierrors.NewBadRequest("no") }, ""},
		"forbidden": {func() error { return apierrors.NewForbidden(pods, "p", errors.New("no")) }, ""},
		"conflict":  {func() error { return apierrors.NewConflict(pods, "p", errors.New("no")) }, ""},
		"our own":   {func() error { return errors.New("an object must have a kind") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rejected := &Error{Mistake: finding.Mistake{Cause: "rejected", Hint: "change it"}, Reason: v0.ReasonApplyFailed, Err: tc.err()}
			for _, err := range []error{tc.err(), rejected} {
				got := At("spec", err)
				if got.Unavailable != (tc.want != "") {
					t.Fatalf("unavailable: %t for %v", got.Unavailable, err)
				}
				if tc.want == "" {
					continue
				}
				if text := "spec: the API server " + tc.want; got.Error() != text || got.Reason != v0.ReasonServerUnavailable || !got.Retryable {
					t.Errorf("problem %+v, want the text %q, and that it is retryable", got, text)
				}
			}
		})
	}
}
