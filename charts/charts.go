// Package charts contains the Helm chart of Akri.
//
// Always: the chart renders what config/ installs, object by object, unless values say
// otherwise; it renders the same for the same values, without a cluster.
//
// Never: a wildcard in a rule of RBAC, a hook that runs an image of others, anything random.
package charts

import "embed"

// Akri is the chart, in the directory akri.
//
//go:embed all:akri
var Akri embed.FS
