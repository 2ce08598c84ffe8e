// Package readiness says whether an object has become what it was applied for: a Pod
// that runs and is ready, a Deployment whose replicas are available, a custom
// resource whose conditions say so. The judgement is kstatus', the one that
// kubectl's and Flux' users know.
package readiness
