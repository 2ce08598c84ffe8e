package migration

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	v0 "akri.sh/akri/api/v0"
)

// Webhook is a ValidatingWebhookConfiguration with a rule for Configurations.
type Webhook struct {
	Name     string
	Original bool // it is that of Akri's chart
	Fail     bool // writes are rejected while the webhook is unreachable
}

// WebhookOf describes a ValidatingWebhookConfiguration, or returns nil if it has no rule
// for Configurations.
func WebhookOf(object *admissionregistrationv1.ValidatingWebhookConfiguration) *Webhook {
	i := slices.IndexFunc(object.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return slices.ContainsFunc(w.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
			return slices.Contains(rule.APIGroups, v0.Domain) && slices.Contains(rule.Resources, "configurations")
		})
	})
	if i < 0 {
		return nil
	}
	policy := object.Webhooks[i].FailurePolicy
	return &Webhook{
		Name: object.Name, Original: ofChart(object), Fail: policy == nil || *policy == admissionregistrationv1.Fail,
	}
}

// ofChart reports whether Akri's chart has made a registration. A value of the chart names
// it and its Service, so the name alone says nothing, and others judge Configurations, too.
func ofChart(object *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	if len(object.Webhooks) != 1 || object.Labels["app.kubernetes.io/name"] != object.Name ||
		object.Labels["app.kubernetes.io/component"] != "admission-webhook" {
		return false
	}
	webhook := object.Webhooks[0]
	service := webhook.ClientConfig.Service
	return service != nil && service.Name == object.Name && webhook.Name == service.Name+"."+service.Namespace+".svc" &&
		service.Path != nil && *service.Path == "/validate"
}
