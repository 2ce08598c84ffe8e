package migration

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/schema"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/templates"
)

// Outcome is what happens to an object.
type Outcome string

// The outcomes.
const (
	Kept     Outcome = "kept"     // the same object, not restarted
	Created  Outcome = "created"  // by the new controller
	Deleted  Outcome = "deleted"  // by the new controller or agents
	Freed    Outcome = "freed"    // a slot
	Left     Outcome = "left"     // nobody looks after it
	Rejected Outcome = "rejected" // it is not created
)

// ObjectOutcome is what happens to one object or slot.
type ObjectOutcome struct {
	Configuration string  `json:"configuration"` // NAMESPACE/NAME
	Object        string  `json:"object"`        // KIND NAME
	Outcome       Outcome `json:"outcome"`
	Detail        string  `json:"detail,omitempty"`
}

// outcomes returns what happens to a Configuration and to all that belongs to it.
func (c *checker) outcomes(parsed *configuration) []ObjectOutcome {
	o := &outcomes{checker: c, parsed: parsed, rendered: map[Reference]bool{}}
	o.add("Configuration "+parsed.Name, Kept, "")
	instances := c.facts.instancesOf(parsed.Namespace, parsed.Name)
	var compiled *templates.Templates
	if parsed.decoded != nil {
		parsed.decoded.Spec.Capacity = max(parsed.decoded.Spec.Capacity, 1)
		if compiled = templates.Compile(parsed.decoded, confine.Policy{}); len(compiled.Problems) > 0 {
			compiled = nil
		}
	}
	for i := range instances {
		instance := &instances[i]
		o.instance(instance)
		instance.Spec.Nodes = slices.DeleteFunc(slices.Clone(instance.Spec.Nodes), c.facts.gone)
		if compiled != nil {
			objects, _ := compiled.Instance.Render(templates.InstanceValues(parsed.decoded, instance))
			for _, object := range objects {
				o.object(object.Content, instance)
			}
		}
		o.others(instance)
	}
	if compiled != nil && len(instances) > 0 {
		objects, _ := compiled.Group.Render(templates.GroupValues(parsed.decoded, instances))
		for _, object := range objects {
			o.object(object.Content, nil)
		}
	}
	return o.list
}

// outcomes collects the outcomes of one Configuration.
type outcomes struct {
	*checker
	parsed   *configuration
	rendered map[Reference]bool
	list     []ObjectOutcome
}

func (o *outcomes) add(object string, outcome Outcome, detail string) {
	o.list = append(o.list, ObjectOutcome{o.parsed.Namespace + "/" + o.parsed.Name, object, outcome, detail})
}

// instance adds an Instance and its slots.
func (o *outcomes) instance(instance *v0.Instance) {
	switch {
	case instance.DeletionTimestamp != nil:
		o.add("Instance "+instance.Name, Deleted, "its deletion is completed")
	case len(instance.Spec.Nodes) == 0:
		o.add("Instance "+instance.Name, Deleted, "no node sees the device")
	default:
		o.add("Instance "+instance.Name, Kept, "on "+strings.Join(instance.Spec.Nodes, ", "))
	}
	for _, slot := range slices.Sorted(maps.Keys(instance.Spec.DeviceUsage)) {
		owner, err := v0.ParseOwner(string(instance.Spec.DeviceUsage[slot]))
		if err != nil || owner.Free() {
			continue
		}
		user, allPods := o.user(instance, owner)
		switch {
		case o.facts.gone(owner.Node):
			o.add("slot "+slot, Freed, "node "+owner.Node+" does not exist")
		case user != "":
			o.add("slot "+slot, Kept, "on "+owner.Node+", used by "+user)
		case allPods:
			o.add("slot "+slot, Freed, "no Pod on "+owner.Node+" uses it")
		default:
			o.add("slot "+slot, Kept, "on "+owner.Node+", if a Pod uses it")
		}
	}
}

// user returns a Pod that may use a slot. All reports whether all Pods were read.
func (o *outcomes) user(instance *v0.Instance, owner v0.Owner) (pod string, all bool) {
	resource := v0.ResourceName(instance.Name)
	if owner.VirtualID != "" {
		resource = v0.ResourceName(instance.Spec.ConfigurationName)
	}
	for i := range o.facts.Pods {
		p := &o.facts.Pods[i]
		active := p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
		if p.Spec.NodeName == owner.Node && active && requests(p, resource) {
			return "Pod " + p.Name, true
		}
	}
	return "", !slices.ContainsFunc(o.facts.Unread, func(u Unread) bool { return u.What == "Pods" })
}

// requests reports whether a container of a Pod requests a resource.
func requests(pod *corev1.Pod, resource string) bool {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, container := range containers {
			if _, found := container.Resources.Limits[corev1.ResourceName(resource)]; found {
				return true
			}
		}
	}
	return false
}

// object adds a rendered object. Instance is nil for those of the Configuration.
func (o *outcomes) object(content map[string]any, instance *v0.Instance) {
	rendered := unstructured.Unstructured{Object: content}
	kind, name := rendered.GetKind(), rendered.GetName()
	o.rendered[Reference{kind, o.parsed.Namespace, name}] = true
	what := kind + " " + name
	if problem := refusal(kind, content); problem != "" {
		o.add(what, Rejected, problem)
		o.checker.add(Changes, o.parsed.place(), "correct it; until then the Configuration is not Ready, and edits are rejected",
			"%s: %s: the API server rejects such objects, and Akri has never created one", kind, problem)
		return
	}
	switch kind {
	case "Pod":
		o.pod(name)
	case "Service":
		if slices.ContainsFunc(o.facts.Services, func(s corev1.Service) bool { return o.is(&s, name) }) {
			o.add(what, Kept, "with its address")
		} else {
			o.add(what, Created, "it exists as long as the device, and not only while a broker runs")
		}
	case "Job":
		o.job(what, instance)
	default:
		o.add(what, Kept, "")
	}
}

func (o *outcomes) is(object metav1.Object, name string) bool {
	return object.GetNamespace() == o.parsed.Namespace && object.GetName() == name
}

func (o *outcomes) pod(name string) {
	i := slices.IndexFunc(o.facts.Pods, func(p corev1.Pod) bool { return o.is(&p, name) })
	switch {
	case i < 0:
		o.add("Pod "+name, Created, "")
	case o.facts.Pods[i].Status.Phase == corev1.PodFailed || o.facts.Pods[i].Status.Phase == corev1.PodSucceeded:
		o.add("Pod "+name, Deleted, "it has terminated and is replaced")
	default:
		o.add("Pod "+name, Kept, "not restarted")
	}
}

// job adds the Job of an Instance. Akri names Jobs after the generation of the
// Configuration, so several can be left of older ones.
func (o *outcomes) job(what string, instance *v0.Instance) {
	found := false
	for i := range o.facts.Jobs {
		job := &o.facts.Jobs[i]
		if instance == nil || job.Namespace != o.parsed.Namespace || job.Labels[v0.LabelInstance] != instance.Name {
			continue
		}
		found = true
		detail := "it goes on"
		if job.Status.CompletionTime != nil || job.Status.Failed > 0 && job.Status.Active == 0 {
			detail = "not run again"
		}
		o.add("Job "+job.Name, Kept, detail)
	}
	if !found {
		o.add(what, Created, "and run")
	}
}

// others adds the objects of an Instance that no template renders.
func (o *outcomes) others(instance *v0.Instance) {
	for i := range o.facts.Pods {
		pod := &o.facts.Pods[i]
		if broker(pod) && pod.Labels[v0.LabelInstance] == instance.Name && pod.Namespace == o.parsed.Namespace &&
			!o.rendered[Reference{"Pod", pod.Namespace, pod.Name}] {
			o.add("Pod "+pod.Name, Left, "the capacity has no slot for it, or its node does not see the device")
		}
	}
	for i := range o.facts.Services {
		service := &o.facts.Services[i]
		if service.Labels[v0.LabelInstance] == instance.Name && service.Namespace == o.parsed.Namespace &&
			!o.rendered[Reference{"Service", service.Namespace, service.Name}] {
			o.add("Service "+service.Name, Left, "it goes when the device goes")
		}
	}
}

// broker reports whether Akri's controller created a Pod itself.
func broker(pod *corev1.Pod) bool {
	return pod.Labels["controller"] == "akri.sh" && pod.Labels[v0.LabelManagedBy] == "" &&
		slices.ContainsFunc(pod.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == "Instance" })
}

// refusal returns why the API server would reject a rendered object, or "".
func refusal(kind string, content map[string]any) string {
	if problems := schema.CheckBuiltIn(content); len(problems) > 0 {
		return problems[0].String()
	}
	if kind != "Service" {
		return ""
	}
	ports, _, _ := unstructured.NestedSlice(content, "spec", "ports")
	clusterIP, _, _ := unstructured.NestedString(content, "spec", "clusterIP")
	serviceType, _, _ := unstructured.NestedString(content, "spec", "type")
	if len(ports) == 0 && clusterIP != corev1.ClusterIPNone && serviceType != string(corev1.ServiceTypeExternalName) {
		return "it has no ports"
	}
	for i, element := range ports {
		port, _ := element.(map[string]any)
		if number, _ := port["port"].(int64); number < 1 || number > 65535 {
			return fmt.Sprintf("spec.ports[%d].port is %d, not between 1 and 65535", i, number)
		}
		if name, _ := port["name"].(string); name == "" && len(ports) > 1 {
			return fmt.Sprintf("spec.ports[%d] has no name, which is required if there are several", i)
		}
	}
	return ""
}
