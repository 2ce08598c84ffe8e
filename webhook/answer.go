package webhook

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating"
)

// sampleHint is the remedy where a property had to be made up.
const sampleHint = "device properties had to be made up here: if this value is the cause, set a real one in spec.sampleProperties"

// Limits of what a message quotes.
const (
	maxCauses         = 5
	maxForbiddenBytes = 1200
	maxQuoteBytes     = 600
	maxSourceBytes    = 200
	maxValueBytes     = 80
)

// apiAnswer interprets the API server's response to the dry run of an object: whether
// the controller will get the same one, and which field of the template caused it.
type apiAnswer struct {
	candidate *candidate
	want      *plan.Desired // as it was sent
	devices   deviceFactory
	update    bool // the Configuration exists
	// existing is set if the object exists, or was rendered for an existing device: the
	// API server's message may then quote what the requester may not read.
	existing bool
}

// interpret returns the findings of a response; none if the object was accepted.
func (a apiAnswer) interpret(err error) []Finding {
	switch {
	case err == nil, errors.Is(err, apply.ErrChanged):
		return nil
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return a.inconclusive("there was no time left for a dry run")
	}
	failure, ok := errors.AsType[*problem.Error](err)
	if !ok {
		return a.inconclusive(fmt.Sprintf("the dry run failed: %v", err))
	}
	switch {
	case failure.Reason == v0.ReasonConflict:
		return a.conflict()
	case failure.Reason == v0.ReasonKindUnavailable:
		return a.inconclusive(failure.Cause)
	case failure.Reason == v0.ReasonImmutable && a.update && a.candidate.level == templating.ConfigurationLevel:
		return []Finding{{Warn, finding.Mistake{
			Path:  a.candidate.place,
			Cause: "the template changes an immutable field of the existing object",
			Hint:  apply.ImmutableHint(a.candidate.kind.GroupKind()),
		}}}
	}
	var status apierrors.APIStatus
	if !errors.As(failure, &status) {
		return a.inconclusive(fmt.Sprintf("the API server cannot be reached: %v", failure.Err))
	}
	return a.rejection(failure, status.Status())
}

// conflict returns a warning that an object of that name exists, unless the
// template handles that case.
func (a apiAnswer) conflict() []Finding {
	if a.want.OnConflict != templating.ConflictFail {
		return nil
	}
	// Whose it is may be hidden from the requester.
	what := fmt.Sprintf("%s %s", a.candidate.kind.Kind, a.want.Ref.Name)
	if a.namePrivate() {
		what = "a " + a.candidate.kind.Kind + " with the name that a device gives"
	}
	failure := apply.ConflictError(what, ownership.Claim{}, ownership.State{})
	return []Finding{{Warn, problem.At(a.candidate.field("metadata.name"), failure).Mistake}}
}

// rejection interprets a Status of the API server.
func (a apiAnswer) rejection(failure *problem.Error, status metav1.Status) []Finding {
	message := status.Message
	found := problem.ReadRefusal(problem.Request{Resource: a.want.Resource, Namespace: a.want.Ref.Namespace}, failure)
	switch {
	case strings.Contains(message, phraseNoDryRun):
		return a.inconclusive("another admission webhook does not support dry run: " + a.quote(message))
	case status.Code >= 500 && !phraseMistyped.MatchString(message) && !phraseUnconverted.MatchString(message), status.Code == 429:
		return a.inconclusive("the API server could not decide: " + a.quote(message))
	case found != nil:
		return a.refused(found, failure, message)
	case status.Reason == metav1.StatusReasonNotFound:
		return a.inconclusive("the API server does not know the namespace or the kind yet: " + a.quote(message))
	case phraseMistyped.MatchString(message):
		return a.mistyped(message)
	case status.Reason == metav1.StatusReasonInvalid && status.Details != nil && len(status.Details.Causes) > 0:
		return a.invalid(status.Details.Causes)
	}
	result := Finding{Deny, finding.Mistake{Path: a.candidate.place, Cause: "the API server rejects it: " + a.quote(message)}}
	if a.devices.guesses(a.candidate.source) {
		result.Hint = sampleHint
	}
	return []Finding{result}
}

// passing are the refusals that may end without another template.
var passing = []string{v0.ReasonQuotaExceeded, v0.ReasonNamespaceTerminating}

// refused interprets an answer that is not about the object alone.
func (a apiAnswer) refused(found *problem.Refusal, failure *problem.Error, message string) []Finding {
	result := Finding{Deny, found.Mistake}
	result.Path = a.candidate.place
	switch {
	case found.Reason == v0.ReasonForbidden && strings.Contains(found.Said, phraseNoImpersonation):
		// The controller may be allowed to; its RoleBinding may not name the webhook.
		result.Level, result.Hint = Inconclusive, "bind the webhook's ServiceAccount to the same Role as the controller's"
		result.Cause = "the webhook may not impersonate the ServiceAccount in spec.serviceAccountName: " + a.quote(message)
	case found.Reason == v0.ReasonForbidden:
		// About permissions, not about the object: even a Secret's message may be shown.
		cause := failure.Cause
		if a.namePrivate() {
			cause = strings.ReplaceAll(cause, strconv.Quote(a.want.Ref.Name), "NAME")
		}
		result.Cause, result.Hint = oneLine(cause, maxForbiddenBytes), ""
	case slices.Contains(passing, found.Reason), found.Kind == "namespace": // a quota's message says how much of it is used
		result.Level = Inconclusive
	case a.awaits(found, strings.TrimPrefix(message, found.Said)):
		result.Level = Inconclusive
		result.Hint = "it refers to an object of another template that does not exist yet: the controller applies this one later"
	case found.Reason != v0.ReasonReferenceMissing:
		result.Cause += "; the API server says: " + a.quote(message)
	}
	if found.Name != "" && a.private() {
		result.Cause, result.Hint = "an object that it names does not exist", "create it, or name another"
	}
	return []Finding{result}
}

// awaits reports whether a refusal is about another object that the templates render. A
// webhook says so by its kind and name, or by its name and that it does not exist.
func (a apiAnswer) awaits(found *problem.Refusal, said string) bool {
	own := a.want.Ref
	return slices.ContainsFunc(a.devices.siblings, func(other inventory.Ref) bool {
		if found.Reason != v0.ReasonWebhookDenied || other.Name == own.Name && other.Kind == own.Kind {
			return found.Name == other.Name && strings.EqualFold(found.Kind, other.Kind)
		}
		name := regexp.QuoteMeta(other.Name) + `($|[^\w-])`
		pattern := `\b` + other.Kind + `\w*\W+` + name
		if other.Name != own.Name {
			pattern += `|(^|[^\w.-])` + name + `.*(not found|not exist)`
		}
		return regexp.MustCompile(`(?i)` + pattern).MatchString(said)
	})
}

// mistyped returns a finding for each value of a wrong type and each field that does
// not exist. They apply to every device.
func (a apiAnswer) mistyped(message string) []Finding {
	var findings []Finding
	for _, match := range phraseMistypedField.FindAllStringSubmatch(message, maxCauses) {
		found := a.mistypedField(templating.PathIn(a.want.Content, match[1]), match[2])
		if strings.HasPrefix(match[2], phraseDuplicate) { // the path names the container
			found.Cause, found.Hint = a.quote(match[1]+" has "+match[2]), "remove one"
		}
		findings = append(findings, found)
	}
	if len(findings) == 0 {
		findings = []Finding{{Deny, finding.Mistake{Path: a.candidate.place, Cause: "the API server rejects it: " + a.quote(message)}}}
	}
	return findings
}

func (a apiAnswer) mistypedField(path templating.Path, message string) Finding {
	result := Finding{Deny, finding.Mistake{Path: a.candidate.field(path.String())}}
	if message == phraseUndeclared {
		result.Cause = fmt.Sprintf("kind %s has no such field", a.candidate.kind.Kind)
		result.Hint = "correct its name, or remove it"
		return result
	}
	conversion, found := phraseTypes[message]
	if !found {
		result.Cause = "the API server rejects it: " + a.quote(message)
		return result
	}
	value := path.Lookup(a.want.Content)
	if conversion.expected == "a number" && integerFields.MatchString(path.String()) {
		conversion.expected = "an integer"
	}
	source, found := a.source(path)
	if !found {
		result.Cause = fmt.Sprintf("it is %s, but the API server expects %s", a.show(value), conversion.expected)
		return result
	}
	result.Cause = fmt.Sprintf(`"%s" gives %s, but the API server expects %s`, source, a.show(value), conversion.expected)
	if inner, whole := expression(source); whole && conversion.function != "" {
		result.Hint = fmt.Sprintf("write {{ %s%s }}", inner, conversion.function)
	}
	return result
}

// integerFields matches well-known names of integer fields. (The schema that
// server-side apply checks against calls all of them numeric.)
var integerFields = regexp.MustCompile(`(?i)(port|replicas|count|seconds|limit|number|minutes|percent|parallelism|completions|` +
	`user|group|mode|weight|capacity)$`)

// invalid returns a finding for each field that the API server rejects.
func (a apiAnswer) invalid(causes []metav1.StatusCause) []Finding {
	var findings []Finding
	for _, cause := range causes[:min(len(causes), maxCauses)] {
		path := templating.PathIn(a.want.Content, cause.Field)
		result := Finding{Deny, finding.Mistake{
			Path:  a.candidate.field(path.String()),
			Cause: "the API server rejects it: " + a.quoteCause(cause),
		}}
		value, exists := path.In(a.want.Content)
		if source, found := a.source(path); found && exists {
			result.Cause = fmt.Sprintf(`"%s" gives %s, which the API server rejects: %s`, source, a.show(value), a.quoteCause(cause))
		}
		part, _ := path.In(a.candidate.source)
		result.Hint = remedyOf(cause, hasExpression(part))
		if a.devices.guesses(part) {
			result.Hint = strings.TrimPrefix(result.Hint+"; "+sampleHint, "; ")
		}
		findings = append(findings, result)
	}
	return findings
}

// remedyOf returns what to write instead of a value that the API server rejects, or "".
func remedyOf(cause metav1.StatusCause, expression bool) string {
	switch {
	case strings.Contains(cause.Message, phraseNoLetter) && !strings.HasSuffix(cause.Field, ".name"): // a port
		return "write a number without quotes, or append | int to the expression"
	case !expression:
		return ""
	case strings.Contains(cause.Message, phraseLabel), strings.Contains(cause.Message, phraseKey):
		return "append | labelValue to the expression"
	case strings.Contains(cause.Message, phraseName):
		return "append | dnsLabel to the expression"
	}
	return ""
}

// immutable returns the message about an update that the API server rejects because of
// an immutable field.
func (a apiAnswer) immutable(err error) string {
	fields := "a field"
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0 {
		fields = templating.PathIn(a.want.Content, status.Status().Details.Causes[0].Field).String()
	}
	if a.want.Recreates() {
		return fields + " is immutable, and the API server would reject a new object"
	}
	return fields + " is immutable; " + apply.ImmutableHint(a.candidate.kind.GroupKind())
}

// source returns the template text of a field, if it has an expression.
func (a apiAnswer) source(path templating.Path) (string, bool) {
	if a.secret() {
		return "", false
	}
	source, ok := path.Lookup(a.candidate.source).(string)
	return oneLine(source, maxSourceBytes), ok && strings.Contains(source, "{{")
}

// secret reports whether nothing of the object must be shown but its fields.
func (a apiAnswer) secret() bool {
	return a.candidate.kind.Group == "" && a.candidate.kind.Kind == "Secret"
}

// private reports whether a message, or a value, may be that of something that exists
// and that the requester may not read: an object or a device.
func (a apiAnswer) private() bool {
	return a.existing || a.devices.observes(a.candidate.source)
}

// namePrivate reports whether the name of the object must not be shown.
func (a apiAnswer) namePrivate() bool { return a.private() && a.candidate.namedByDevice() }

// quote returns a message of the API server, except if it may contain what the
// requester must not see.
func (a apiAnswer) quote(message string) string {
	switch {
	case a.secret():
		return "(the API server's message about a Secret is not repeated)"
	case a.private():
		return "(the API server's message is not repeated, because it may quote an existing object)"
	}
	return oneLine(message, maxQuoteBytes)
}

// quoteCause returns what the API server says about a field, or only the reason.
func (a apiAnswer) quoteCause(cause metav1.StatusCause) string {
	switch {
	case a.secret():
		return string(cause.Type) + " " + a.quote(cause.Message)
	case a.private():
		return string(cause.Type)
	}
	return a.quote(cause.Message)
}

// show returns a value with its type.
func (a apiAnswer) show(value any) string {
	if a.secret() {
		return "a value"
	}
	private := a.private()
	switch value := value.(type) {
	case nil:
		return "nothing"
	case string:
		if private {
			return "a string"
		}
		return fmt.Sprintf("the string %q", text.Truncate(value, maxValueBytes))
	case bool:
		return fmt.Sprintf("%t", value)
	case int64, float64:
		if private {
			return "a number"
		}
		return fmt.Sprintf("the number %v", value)
	case []any:
		return "a list"
	}
	return "a map"
}

// inconclusive returns a finding about a response that may be different later.
func (a apiAnswer) inconclusive(cause string) []Finding {
	return inconclusive(a.candidate.place, oneLine(cause, maxQuoteBytes))
}
