// Package certs provides the webhook's serving certificate and its path.
//
// cert-controller creates the certificate, renews it, stores it in a Secret and
// writes its CA into the ValidatingWebhookConfiguration. This package reads the
// Secret's certificate as soon as it changes (state.go): a kubelet would take up to two
// minutes to update a mounted Secret. It also registers the path at which the webhook is
// served, which follows from the CA's private key.
//
// Always: every replica has the certificate that is in the Secret. Replicas may
// race to create or renew it; the Secret's resourceVersion decides, and the others
// take over what the winner wrote. A replica is not ready before the API server
// trusts its certificate and knows its path. Nothing is written while neither changes.
//
// Never: keeps the certificate in files, for which the Pod would need a volume that a drain must
// be told to delete. Reads a Secret or a webhook configuration other than the webhook's own.
package certs
