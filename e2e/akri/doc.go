// Package akri builds Akri from this checkout and puts it into a test cluster:
// as pods, from images made here, or, where the cluster has no nodes, as
// processes beside it.
//
//	programs, err := akri.Build(ctx, os.Stderr)
//	err = akri.Install(ctx, c, programs)
//
// [Install] applies what an operator would: the manifests of config/.
package akri
