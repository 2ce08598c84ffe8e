package webhook

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/templating"
)

// sampleHint is the remedy where a property had to be made up.
const sampleHint = "the properties of a device had to be made up here: if this value is to blame, give a real one in spec.sampleProperties"

// refusal reads the API server's answer to an object: whether it will be the same
// later, and which field of the template is meant.
type refusal struct {
	review  *review
	trial   *trial
	content map[string]any // as it was sent
}

func (a refusal) read(err error) []Finding {
	switch {
	case err == nil, errors.Is(err, apply.ErrChanged):
		return nil
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return a.unsure("there was no time left to try it")
	}
	answer, classified := errors.AsType[*problem.Error](err)
	if !classified {
		return a.unsure(fmt.Sprintf("it could not be tried: %v", err))
	}
	switch {
	case answer.Reason == v0.ReasonConflict:
		return a.taken(answer)
	case answer.Reason == v0.ReasonKindUnavailable:
		return a.unsure(answer.Cause)
	case answer.Reason == v0.ReasonImmutable && a.review.old != nil && a.trial.level == templating.ConfigurationLevel:
		return []Finding{{Level: Warn, Place: a.trial.place, Cause: "the object that exists cannot be changed into this one", Remedy: "delete it, give the template another metadata.name, or annotate it akri.sh/on-immutable: recreate"}}
	}
	var status apierrors.APIStatus
	if !errors.As(answer, &status) {
		return a.unsure(fmt.Sprintf("the API server cannot be reached: %v", answer.Err))
	}
	return a.judged(answer, status.Status())
}

// taken: an object of that name exists already.
func (a refusal) taken(answer *problem.Error) []Finding {
	if len(a.trial.objects) > 0 && a.trial.objects[0].Directives.OnConflict != templating.ConflictFail {
		return nil // the author has said what is to happen then
	}
	return []Finding{{Level: Warn, Place: a.trial.field("metadata.name"), Cause: answer.Cause}}
}

// judged reads a status of the API server.
func (a refusal) judged(answer *problem.Error, status metav1.Status) []Finding {
	message := status.Message
	switch {
	case strings.Contains(message, "does not support dry run"):
		return a.unsure("a webhook of somebody else does not take part in dry runs: " + a.quote(message))
	case status.Code >= 500 && !holds.MatchString(message), status.Code == 429:
		return a.unsure("the API server gives no verdict: " + a.quote(message))
	case status.Reason == metav1.StatusReasonForbidden && strings.Contains(message, "exceeded quota"):
		return a.unsure("there is no quota for it: " + a.quote(message))
	case apierrors.HasStatusCause(answer, corev1.NamespaceTerminatingCause):
		return a.unsure("the namespace is being deleted")
	case status.Reason == metav1.StatusReasonNotFound:
		return a.unsure("the API server has no place for it yet: " + a.quote(message))
	case status.Reason == metav1.StatusReasonForbidden && rights.MatchString(message):
		return []Finding{{Level: Deny, Place: a.trial.place, Cause: cut(answer.Cause, 1200)}} // about rights, not about the object
	case typed.MatchString(message):
		return a.typed(message)
	case status.Reason == metav1.StatusReasonInvalid && status.Details != nil && len(status.Details.Causes) > 0:
		return a.invalid(status.Details.Causes)
	}
	finding := Finding{Level: Deny, Place: a.trial.place, Cause: "the API server refuses it: " + a.quote(message)}
	if a.guessed(a.trial.written) {
		finding.Remedy = sampleHint
	}
	return []Finding{finding}
}

var (
	// rights are what the authorizer says, and nobody else.
	rights = regexp.MustCompile(`cannot (get|create|patch|impersonate\S*) resource `)
	// typed is how server-side apply says that values have the wrong type.
	typed = regexp.MustCompile(`failed to create typed (patch )?object`)
	// holds are answers that look like the API server's own trouble by their
	// code, and are about the object.
	holds = regexp.MustCompile(`failed to create typed (patch )?object|unable to convert unstructured object|failed to convert`)
	// complaint is one line of what typed matches.
	complaint = regexp.MustCompile(`(?m)(?:^|: |\s)(\.[^\s:]*(?:"[^"]*"[^\s:]*)*): (expected [a-z]+|field not declared in schema|[^\n]*)`)
)

// typed tells of values that have the wrong type, and of fields that do not
// exist. That holds for every device.
func (a refusal) typed(message string) []Finding {
	var findings []Finding
	for _, match := range complaint.FindAllStringSubmatch(message, mostCauses) {
		findings = append(findings, a.mistyped(locate(a.content, match[1]), match[2]))
	}
	if len(findings) == 0 {
		findings = []Finding{{Level: Deny, Place: a.trial.place, Cause: "the API server refuses it: " + a.quote(message)}}
	}
	return findings
}

// conversions say what the API server wants and how an expression gives it.
var conversions = map[string]struct{ want, function string }{
	"expected numeric": {"a number", " | int"},
	"expected integer": {"an integer", " | int"},
	"expected string":  {"a string", " | toString"},
	"expected boolean": {"true or false", ` | eq "true"`},
	"expected list":    {"a list", ""},
	"expected map":     {"a map", ""},
}

func (a refusal) mistyped(at field, what string) Finding {
	finding := Finding{Level: Deny, Place: a.trial.field(at.String())}
	if strings.HasPrefix(what, "field not declared") {
		finding.Cause, finding.Remedy = fmt.Sprintf("kind %s has no such field", a.trial.kind.Kind), "correct its name, or remove it"
		return finding
	}
	conversion, known := conversions[what]
	if !known {
		finding.Cause = "the API server refuses it: " + a.quote(what)
		return finding
	}
	value, _ := at.at(a.content)
	if conversion.want == "a number" && wholeNumbers.MatchString(at.String()) {
		conversion.want = "an integer"
	}
	source, is := a.source(at)
	if !is {
		finding.Cause = fmt.Sprintf("it is %s, the API server wants %s", a.show(value), conversion.want)
		return finding
	}
	finding.Cause = fmt.Sprintf(`"%s" gives %s, the API server wants %s`, source, a.show(value), conversion.want)
	if inner, whole := expression(source); whole && conversion.function != "" {
		finding.Remedy = fmt.Sprintf("write {{ %s%s }}", inner, conversion.function)
	}
	return finding
}

// wholeNumbers are fields that everybody knows to be integers. (The schema that
// server-side apply checks by calls all of them numeric.)
var wholeNumbers = regexp.MustCompile(`(?i)(port|replicas|count|seconds|limit|number|minutes|percent|parallelism|completions|user|group|mode|weight|capacity)$`)

// mostCauses is how much of one answer is told.
const mostCauses = 5

// invalid tells what the API server finds wrong with the values of fields.
func (a refusal) invalid(causes []metav1.StatusCause) []Finding {
	var findings []Finding
	for _, cause := range causes[:min(len(causes), mostCauses)] {
		at := locate(a.content, cause.Field)
		finding := Finding{Level: Deny, Place: a.trial.field(at.String())}
		value, found := at.at(a.content)
		source, is := a.source(at)
		if is && found {
			finding.Cause = fmt.Sprintf(`"%s" gives %s, which the API server refuses: %s`, source, a.show(value), a.quote(cause.Message))
		} else {
			finding.Cause = "the API server refuses it: " + a.quote(cause.Message)
		}
		part, _ := at.at(a.trial.written)
		if len(at) == 0 {
			part = a.trial.written
		}
		if a.guessed(part) {
			finding.Remedy = sampleHint
		}
		findings = append(findings, finding)
	}
	return findings
}

// guessed tells whether a part of the template reads properties that had to be
// made up.
func (a refusal) guessed(part any) bool {
	return len(devicesOf(a.review).guessed) > 0 && readsProperties(part)
}

// source is what the author wrote at a field, if that is an expression.
func (a refusal) source(at field) (string, bool) {
	written, _ := at.at(a.trial.written)
	source, is := written.(string)
	return cut(source, 200), is && strings.Contains(source, "{{")
}

// secret tells whether the object's values are nobody's business.
func (a refusal) secret() bool { return a.trial.kind.Group == "" && a.trial.kind.Kind == "Secret" }

// quote is what the API server says. Of a Secret it is not repeated.
func (a refusal) quote(message string) string {
	if a.secret() {
		return "(what the API server says of a Secret is not repeated)"
	}
	return cut(message, 600)
}

// show is a value with its type.
func (a refusal) show(value any) string {
	if a.secret() {
		return "a value"
	}
	switch value := value.(type) {
	case nil:
		return "nothing"
	case string:
		return fmt.Sprintf("the string %q", cut(value, 80))
	case bool:
		return fmt.Sprintf("%t", value)
	case int64, float64:
		return fmt.Sprintf("the number %v", value)
	case []any:
		return "a list"
	}
	return "a map"
}

// unsure is an answer that may be another one later.
func (a refusal) unsure(cause string) []Finding {
	return []Finding{{Level: Inconclusive, Place: a.trial.place, Cause: cut(cause, 600)}}
}
