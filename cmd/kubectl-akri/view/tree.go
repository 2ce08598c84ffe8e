package view

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/xlab/treeprint"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/text"
)

// Branch is a Configuration with its Instances.
type Branch struct {
	Configuration v0.Configuration `json:"configuration"`
	Instances     []v0.Instance    `json:"instances"`
}

// Forest is what tree shows.
type Forest []Branch

// NewForest sorts Configurations, and the Instances that belong to them.
func NewForest(configurations []v0.Configuration, instances []v0.Instance) Forest {
	forest := make(Forest, len(configurations))
	for i := range configurations {
		forest[i] = Branch{configurations[i], []v0.Instance{}}
		for j := range instances {
			if metav1.IsControlledBy(&instances[j], &configurations[i]) {
				forest[i].Instances = append(forest[i].Instances, instances[j])
			}
		}
		slices.SortFunc(forest[i].Instances, func(a, b v0.Instance) int { return cmp.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(forest, func(a, b Branch) int {
		return cmp.Or(cmp.Compare(a.Configuration.Namespace, b.Configuration.Namespace), cmp.Compare(a.Configuration.Name, b.Configuration.Name))
	})
	return forest
}

// Text prints each Configuration with its Instances, their slots and their objects,
// each with its readiness.
func (f Forest) Text(out io.Writer) error {
	var b strings.Builder
	for i := range f {
		configuration := &f[i].Configuration
		tree := treeprint.NewWithRoot(configurationLine(configuration))
		addConditions(tree, configuration.Status.Conditions)
		addResources(tree, configuration.Status.Resources)
		for j := range f[i].Instances {
			addInstance(tree, &f[i].Instances[j])
		}
		b.WriteString(tree.String())
	}
	return printed(out, b.String())
}

func configurationLine(configuration *v0.Configuration) string {
	devices := "no devices"
	if n := int(configuration.Status.Instances); n > 0 {
		devices = counted(n, "device")
	}
	return fmt.Sprintf("Configuration %s/%s  %s: %s, capacity %d each  %s", configuration.Namespace, configuration.Name,
		configuration.Spec.DiscoveryHandler.Name, devices, configuration.Spec.Capacity, readiness(configuration.Status.Conditions))
}

func addInstance(tree treeprint.Tree, instance *v0.Instance) {
	branch := tree.AddBranch(fmt.Sprintf("Instance %s  on %s  %s", called(instance),
		cmp.Or(strings.Join(instance.Spec.Nodes, ", "), "no node"), readiness(instance.Status.Conditions)))
	addConditions(branch, instance.Status.Conditions)
	for slot := range int(instance.Spec.Capacity) {
		name := v0.SlotName(instance.Name, slot)
		branch.AddNode(fmt.Sprintf("slot %s  %s", name, ownerText(instance.Spec.DeviceUsage[name], instance.Spec.ConfigurationName)))
	}
	for _, name := range slices.Sorted(maps.Keys(instance.Spec.DeviceUsage)) {
		if slot, err := v0.ParseSlotName(instance.Name, name); err != nil || slot >= int(instance.Spec.Capacity) {
			branch.AddNode(
				fmt.Sprintf("slot %s  %s, exceeds the capacity", name, ownerText(instance.Spec.DeviceUsage[name], instance.Spec.ConfigurationName)),
			)
		}
	}
	addResources(branch, instance.Status.Resources)
}

// called returns the name of an Instance, and what people call its device.
func called(instance *v0.Instance) string {
	return strings.TrimSuffix(instance.Name+"  "+text.OneLine(v0.DisplayName(instance)), "  ")
}

// ownerText describes the owner of a slot of one of a Configuration's devices.
func ownerText(value v0.SlotOwner, configuration string) string {
	owner, err := v0.ParseOwner(string(value))
	switch {
	case err != nil:
		return fmt.Sprintf("invalid: %v", err)
	case owner.Free():
		return "free"
	case owner.VirtualID != "":
		return fmt.Sprintf("used on %s through %s (id %s)", owner.Node, v0.ResourceName(configuration), owner.VirtualID)
	}
	return "used on " + owner.Node
}

func addResources(tree treeprint.Tree, resources []v0.ResourceStatus) {
	for _, resource := range resources {
		tree.AddNode(fmt.Sprintf("%s %s  %s", kindOf(resource), resource.Name, ResourceState(resource)))
	}
}

// kindOf returns the kind of an object, with its group if it has the name of a kind of
// Kubernetes, as Knative's Service does.
func kindOf(resource v0.ResourceStatus) string {
	builtin := append([]string{"Service", "ConfigMap", "Secret", "Ingress", "CronJob", "Event", "Node", "NetworkPolicy"}, podKinds...)
	if strings.Contains(resource.Group, ".") && !strings.HasSuffix(resource.Group, ".k8s.io") && slices.Contains(builtin, resource.Kind) {
		return resource.Kind + "." + resource.Group
	}
	return resource.Kind
}

// ResourceState says whether an object is ready, and why.
func ResourceState(resource v0.ResourceStatus) string {
	switch {
	case resource.Ready && resource.Reason != "":
		return "ready: " + resource.Reason
	case resource.Ready:
		return "ready"
	case resource.Reason == "":
		return "not ready"
	}
	return "not ready: " + resource.Reason
}

// addConditions adds the conditions that are False, except Ready.
func addConditions(tree treeprint.Tree, conditions []metav1.Condition) {
	for _, condition := range conditions {
		if condition.Type != v0.ConditionReady && condition.Status == metav1.ConditionFalse {
			branch := tree.AddBranch(fmt.Sprintf("not %s: %s", condition.Type, condition.Reason))
			for line := range strings.SplitSeq(condition.Message, "\n") {
				branch.AddNode(line)
			}
		}
	}
}

// readiness returns the Ready condition in words.
func readiness(conditions []metav1.Condition) string {
	ready := meta.FindStatusCondition(conditions, v0.ConditionReady)
	switch {
	case ready == nil || ready.Reason == v0.ReasonPending:
		return "(not reconciled yet)"
	case ready.Status == metav1.ConditionTrue:
		return "Ready"
	}
	return "not ready: " + ready.Reason
}
