// Package akri builds Akri from this checkout and installs it in a test cluster: as
// Pods, from images built here, or as processes on this machine if the cluster has no
// nodes.
//
//	programs, err := akri.Build(ctx, os.Stderr)
//	err = akri.Install(ctx, c, programs)
//
// Always: [Install] applies the manifests of config/, as an operator would who does not use
// the chart. Package install and the demo use the chart; a test of the chart compares both.
// Never: a setting that the manifests do not have.
package akri
