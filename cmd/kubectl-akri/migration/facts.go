package migration

import (
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v0 "akri.sh/akri/api/v0"
)

// Facts are what was read of a cluster.
type Facts struct {
	// Cluster is the UID of the namespace kube-system, which no two clusters share.
	Cluster string
	// Configurations are not decoded, because the original Akri stores what this one
	// would reject.
	Configurations []unstructured.Unstructured
	Instances      []v0.Instance
	Definitions    []Definition
	// Pods are those that request a device or have Akri's labels; Services and Jobs
	// are those with Akri's labels.
	Pods     []corev1.Pod
	Services []corev1.Service
	Jobs     []batchv1.Job
	// Nodes are the names of all nodes; nil if they could not be listed.
	Nodes map[string]bool
	// Down are the names of those that are not Ready, sorted.
	Down []string
	// Found reports for each object that a Configuration refers to whether it exists.
	// Those that could not be read are missing.
	Found     map[Reference]bool
	Workloads []Workload
	Webhooks  []Webhook
	// Left are further objects of Akri's chart that exist.
	Left []Object
	// Bindings are all ClusterRoleBindings and RoleBindings, and Users what runs as a
	// ServiceAccount with a name like those of Akri's chart.
	Bindings []Binding
	Users    []User
	Release  *Release
	// Pending are the Secrets in which Helm records that it was interrupted while it
	// installed or changed the new Akri.
	Pending []Object
	Unread  []Unread
}

// Definition is a CustomResourceDefinition of Akri.
type Definition struct {
	Name     string
	Managers []string // that own fields of its spec
	Status   bool     // it has the status subresource, which Akri's lacks
}

// Reference names a namespaced object.
type Reference struct{ Kind, Namespace, Name string }

// String returns the kind and the name.
func (r Reference) String() string { return r.Kind + " " + join(r.Namespace, r.Name) }

// Object names an object of any kind, as kubectl does.
type Object struct {
	Resource  string `json:"resource"` // as in deployments.apps
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the resource and the name.
func (o Object) String() string { return o.Resource + " " + join(o.Namespace, o.Name) }

// join returns NAMESPACE/NAME, or the name of an object without a namespace.
func join(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Workload is a Deployment or a DaemonSet that belongs to Akri.
type Workload struct {
	Kind, Namespace, Name string
	Labels, Annotations   map[string]string
	Selector              map[string]string
	Pod                   corev1.PodSpec
	// Desired is the number of Pods that there should be, Running that of those that
	// there are.
	Desired, Running, Ready int32
}

// Unread is what could not be read, and why.
type Unread struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// instancesOf returns the Instances of a Configuration, sorted by name.
func (f *Facts) instancesOf(namespace, c string) []v0.Instance {
	var found []v0.Instance
	for _, instance := range f.Instances {
		if instance.Namespace == namespace && instance.Spec.ConfigurationName == c {
			found = append(found, instance)
		}
	}
	return found
}

// gone reports whether a node is known not to exist.
func (f *Facts) gone(node string) bool { return f.Nodes != nil && !f.Nodes[node] }

// workloads returns the workloads of Akri with a role.
func (f *Facts) workloads(role Role) []Workload {
	return slices.DeleteFunc(slices.Clone(f.Workloads), func(w Workload) bool { return w.Role() != role })
}

// originalWebhooks returns the registrations of Akri's chart.
func (f *Facts) originalWebhooks() []Webhook {
	return slices.DeleteFunc(slices.Clone(f.Webhooks), func(w Webhook) bool { return !w.Original })
}

// References returns the objects that Configurations refer to and that must exist.
func (f *Facts) References() []Reference {
	needed := map[Reference]bool{}
	for i := range f.Configurations {
		c := parse(&f.Configurations[i])
		if c.account != "" {
			needed[Reference{"ServiceAccount", c.Namespace, c.account}] = true
		}
		for _, source := range c.sources {
			needed[source.inOwn(c.Namespace)] = true
		}
	}
	return slices.SortedFunc(maps.Keys(needed), compareReferences)
}
