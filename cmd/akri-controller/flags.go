package main

import (
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"akri.sh/akri/controller/confine"
)

// addressFlags are the addresses that both commands serve.
type addressFlags struct {
	metrics string
	probes  string
}

func (f *addressFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.metrics, "metrics-bind-address", "127.0.0.1:8080",
		"`address` that serves /metrics, without authentication; 0 turns it off")
	set.StringVar(&f.probes, "health-probe-bind-address", ":8081", "`address` that serves /healthz and /readyz; 0 turns it off")
}

// policyFlags extend what Configurations may create. The controller enforces
// them; the webhook denies in advance what the controller would refuse.
type policyFlags struct {
	clusterScoped   bool
	otherNamespaces bool
	kinds           []string
}

func (f *policyFlags) register(set *pflag.FlagSet) {
	set.BoolVar(&f.clusterScoped, "allow-cluster-scoped", false, "allow Configurations to create cluster-scoped objects")
	set.BoolVar(&f.otherNamespaces, "allow-other-namespaces", false, "allow Configurations to create objects outside their own namespace")
	set.StringSliceVar(&f.kinds, "allow-kinds", nil, "allow Configurations to create objects of these `KIND.GROUP`s, for example "+
		"Role.rbac.authorization.k8s.io, which are refused by default because they give control of the cluster")
}

func (f *policyFlags) policy() confine.Policy {
	policy := confine.Policy{ClusterScoped: f.clusterScoped, OtherNamespaces: f.otherNamespaces}
	for _, kind := range f.kinds {
		policy.Kinds = append(policy.Kinds, schema.ParseGroupKind(kind))
	}
	return policy
}
