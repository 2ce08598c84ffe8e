// Package webhook validates Configurations before they are stored: it reports to the
// author what would fail later.
//
// The API server calls the webhook when a Configuration is created or updated, but
// never for Instances, because agents must be able to write while no webhook
// is running. Read chain.go first: [Chain] performs the checks in order. Each is in a file of its
// own, check_*.go, and returns [Finding] values; the author sees all findings of a
// stage together. The other files are what the checks use (candidate.go, rendering.go, cluster.go,
// answer.go) and what receives and answers requests (handler.go, request.go, finding.go, and the
// packages server and certs).
//
// Always: what cannot be known yet (a kind that is not installed, a quota, another
// webhook that does not respond) is admitted with a warning; the webhook responds
// before the API server's timeout; a panic denies the request and says so; a bounded
// number of requests is read and reviewed at the same time (handler.go).
//
// Never: writes an object. The transport turns every request that could write into
// a dry run. Nor does a message contain an object that the API server returned, or
// what it says about a Secret or about an object that exists.
package webhook
