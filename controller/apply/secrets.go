package apply

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"akri.sh/akri/controller/problem"
)

// redact returns an error of a request about an object with a text that may be
// repeated. The API server's messages may quote the object, so those about Secrets
// are reduced to the reason and the fields.
func redact(resource schema.GroupVersionResource, err error) error {
	if err == nil || resource.Group != "" || resource.Resource != "secrets" {
		return err
	}
	said := ""
	if found := problem.ReadRefusal(problem.Request{}, err); found != nil {
		said = found.Said
	}
	switch said {
	case err.Error():
		return err
	case "":
		said = string(apierrors.ReasonForError(err))
	}
	if said == "" {
		said = "unknown error"
	}
	for _, cause := range invalidCauses(err) {
		said += " " + cause.Field
	}
	return &problem.Redacted{Text: said + " (the message is left out because it may quote the Secret)", Err: err}
}
