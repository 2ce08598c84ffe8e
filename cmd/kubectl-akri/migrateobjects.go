package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/facts"
	"akri.sh/akri/cmd/kubectl-akri/offline"
	"akri.sh/akri/cmd/kubectl-akri/schema"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/controller/advice"
	"akri.sh/akri/internal/finding"
)

// byAkri selects what Akri's controller created. Its Services for an Instance, and those of
// this Akri, lack the name of the Configuration.
const byAkri = "controller=akri.sh"

// maxName is the length of the name of a Configuration whose Instances fit into the name
// of a resource.
const maxName = 56

// existing are the Services and Jobs that Akri's controller created, and the Pods that it
// created or that request a device.
type existing struct {
	pods   []corev1.Pod
	others []unstructured.Unstructured
}

// objects checks each Configuration, and says what happens to all that belongs to it.
func (m *migration) objects(ctx context.Context) error {
	var found existing
	keep := func(object *unstructured.Unstructured) { found.others = append(found.others, *object) }
	err := errors.Join(
		each(ctx, m, corev1.SchemeGroupVersion.WithResource("services"), byAkri, keep),
		each(ctx, m, batchv1.SchemeGroupVersion.WithResource("jobs"), byAkri, keep),
		each(ctx, m, corev1.SchemeGroupVersion.WithResource("pods"), "", func(pod *corev1.Pod) {
			if pod.Labels[v0.LabelConfiguration] != "" || len(advice.Requested(&pod.Spec)) > 0 {
				found.pods = append(found.pods, *pod)
			}
		}))
	for i := range m.configurations {
		c := &m.configurations[i]
		place := "Configuration " + c.GetNamespace() + "/" + c.GetName()
		m.owned(place, c)
		err = errors.Join(err, m.references(ctx, place, c))
		m.outcomes(place, c, found)
	}
	return err
}

// owned checks what Akri's agents left on a Configuration or an Instance. Their finalizers
// are bare node names; qualified ones belong to others.
func (m *migration) owned(place string, object metav1.Object) {
	if object.GetDeletionTimestamp() != nil {
		m.report.add(finding.Warning, place, "", "it is being deleted, which is completed once the finalizers of Akri's agents are removed")
	}
	for _, node := range object.GetFinalizers() {
		if !strings.Contains(node, "/") && m.gone(node) {
			m.report.add(finding.Warning, place, "",
				"the finalizer of node %s, which does not exist, keeps it from being deleted, and is removed", node)
		}
	}
}

// gone reports whether a node is known not to exist.
func (m *migration) gone(node string) bool {
	_, exists := m.ready[node]
	return m.ready != nil && !exists
}

// references checks the objects that a Configuration refers to. Only the metadata of
// Secrets is read.
func (m *migration) references(ctx context.Context, place string, object *unstructured.Unstructured) error {
	c, err := decode[v0.Configuration](object.Object)
	if err != nil {
		m.report.add(finding.Error, place, "correct the field", "the controller cannot read it: %v", err)
		return nil
	}
	for _, pod := range []string{"brokerPodSpec", "brokerJobSpec.template.spec"} {
		path := strings.Split("spec.brokerSpec."+pod+".serviceAccountName", ".")
		account, _, _ := unstructured.NestedString(object.Object, path...)
		missing, err := m.missing(ctx, "ServiceAccount", c.Namespace, account)
		if missing && account != "default" {
			m.report.add(finding.Warning, place, "create the ServiceAccount", "the ServiceAccount %s of its brokers does not exist: "+
				"they cannot be created, and edits are rejected until it does", account)
		}
		if err != nil {
			return err
		}
	}
	for _, property := range c.Spec.DiscoveryHandler.DiscoveryProperties {
		if property.ValueFrom == nil {
			continue
		}
		if err := m.property(ctx, place, c, property); err != nil {
			return err
		}
	}
	return nil
}

// property checks a discovery property that is taken from a Secret or a ConfigMap. Without
// a namespace, Akri reads it in default, and this Akri in that of the Configuration.
func (m *migration) property(ctx context.Context, place string, c *v0.Configuration, property v0.DiscoveryProperty) error {
	kind, key := "Secret", property.ValueFrom.SecretKeyRef
	if key == nil {
		kind, key = "ConfigMap", property.ValueFrom.ConfigMapKeyRef
	}
	if key == nil {
		return nil // lint reports it
	}
	what := fmt.Sprintf("discovery property %s: %s %s", property.Name, kind, key.Name)
	missing, err := m.missing(ctx, kind, cmp.Or(key.Namespace, c.Namespace), key.Name)
	missing = missing && !key.Optional
	moved := key.Namespace == "" && c.Namespace != metav1.NamespaceDefault
	switch {
	case moved && missing:
		m.report.add(finding.Error, place, "copy it to namespace "+c.Namespace,
			"%s has no namespace: Akri reads it in default, the new Akri in %s, where it does not exist; discovery would fail", what, c.Namespace)
	case moved:
		m.report.add(finding.Warning, place, "compare it with the one in default",
			"%s has no namespace: Akri reads it in default, the new Akri in %s", what, c.Namespace)
	case key.Namespace != "" && key.Namespace != c.Namespace:
		m.report.add(finding.Error, place, "copy it to namespace "+c.Namespace+", or run the agents with --allow-cross-namespace-properties",
			"%s is in namespace %s, where agents do not read without a flag; discovery would fail", what, key.Namespace)
	case missing:
		m.report.add(finding.Warning, place, "create it", "%s does not exist, so discovery fails, as with Akri", what)
	}
	m.report.add(finding.Warning, place, "grant it, with --agent=NAMESPACE/"+agentName+" if you install elsewhere than in "+facts.Namespace+
		": kubectl akri rbac -n "+c.Namespace+" "+c.Name+" | kubectl apply -f -",
		"the agents need permission to read what discoveryProperties refer to")
	return err
}

// missing reports whether an object is known not to exist.
func (m *migration) missing(ctx context.Context, kind, namespace, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	var object metav1.PartialObjectMetadata
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	err := m.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &object)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, m.skip(kind+"s that Configurations refer to", err)
}

// outcomes adds what happens to a Configuration and to all that belongs to it. Lint judges
// it and renders its objects.
func (m *migration) outcomes(place string, c *unstructured.Unstructured, found existing) {
	name := c.GetNamespace() + "/" + c.GetName()
	kept := objectOutcome{name, "Configuration " + c.GetName(), "kept", ""}
	if release := c.GetAnnotations()["meta.helm.sh/release-name"]; release != "" {
		kept.Detail = "Helm release " + release + " contains it: keep its manifest"
	}
	m.report.Objects = append(m.report.Objects, kept)
	var given []any
	var instances []v0.Instance
	for _, instance := range m.instances {
		if instance.Namespace == c.GetNamespace() && instance.Spec.ConfigurationName == c.GetName() {
			instances = append(instances, instance)
			instance.TypeMeta = metav1.TypeMeta{APIVersion: v0.GroupVersion.String(), Kind: "Instance"}
			instance.Spec.Nodes = slices.DeleteFunc(slices.Clone(instance.Spec.Nodes), m.gone)
			given = append(given, instance)
		}
	}
	objects, mistakes := offline.Stored(c.Object, given...)
	if capacity, _, _ := unstructured.NestedInt64(c.Object, "spec", "capacity"); capacity == 0 && len(given) > 0 {
		c = c.DeepCopy()
		_ = unstructured.SetNestedField(c.Object, int64(1), "spec", "capacity") // the controller takes it for 1
		objects, _ = offline.Stored(c.Object, given...)
	}
	for _, mistake := range mistakes {
		level, effect := finding.Warning, "it stays, but edits are rejected until this is corrected"
		switch mistake.Path {
		case "metadata.name":
			effect = "it keeps working, but cannot be created again"
			if len(c.GetName()) > maxName {
				effect += ", and new devices get no Instances"
			}
			mistake.Hint = "create it under another name when it suits you: its Instances and resources get new names"
		case "spec.protocol", "spec.properties", "spec.units", "spec.brokerPodSpec": // of Akri 0.6 and older
			level, effect = finding.Error, "it is lost at the next write"
		case "spec.brokerSpec": // a Pod and a Job
			level, effect, mistake.Hint = finding.Error, "neither is created", "keep one of them"
		}
		m.report.add(level, place, mistake.Hint, "%s: %s; %s", mistake.Path, strings.TrimPrefix(mistake.Cause, mistake.Path+" "), effect)
	}
	for i := range instances {
		m.instance(name, &instances[i], found.pods)
		m.report.Objects = append(m.report.Objects, judge(name, instances[i].Name, objects["Instance "+instances[i].Name], found)...)
	}
	if len(instances) > 0 {
		m.report.Objects = append(m.report.Objects, judge(name, "", objects["Configuration "+c.GetName()], found)...)
	}
}

// instance checks an Instance, and adds what happens to it and to its slots.
func (m *migration) instance(configuration string, instance *v0.Instance, pods []corev1.Pod) {
	place := "Instance " + instance.Namespace + "/" + instance.Name
	m.owned(place, instance)
	if instance.Spec.CDIName == "" {
		m.report.add(finding.Error, place, "upgrade Akri to 0.13 first, or delete the Instance: it is created again, and its brokers restart",
			"it has no cdiName, as before Akri 0.13, so agents cannot write it")
	}
	add := func(object, outcome, detail string) {
		m.report.Objects = append(m.report.Objects, objectOutcome{configuration, object, outcome, detail})
	}
	switch {
	case instance.DeletionTimestamp != nil:
		add("Instance "+instance.Name, "deleted", "its deletion is completed")
	case len(instance.Spec.Nodes) == 0:
		add("Instance "+instance.Name, "deleted", "with its brokers: no node sees the device, and Akri has left the Instance behind")
	default:
		add("Instance "+instance.Name, "kept", "on "+strings.Join(instance.Spec.Nodes, ", "))
	}
	for _, slot := range slices.Sorted(maps.Keys(instance.Spec.DeviceUsage)) {
		owner, err := v0.ParseOwner(string(instance.Spec.DeviceUsage[slot]))
		if err != nil {
			m.report.add(finding.Warning, place, `set it to ""`, "slot %s: its owner is not valid: %v", slot, err)
		}
		if err != nil || owner.Free() {
			continue
		}
		resource := v0.ResourceName(instance.Name)
		if owner.VirtualID != "" {
			resource = v0.ResourceName(instance.Spec.ConfigurationName)
		}
		user := slices.IndexFunc(pods, func(p corev1.Pod) bool {
			return p.Spec.NodeName == owner.Node && !view.Terminated(&p) && view.Requests(&p, resource)
		})
		switch {
		case m.gone(owner.Node):
			add("slot "+slot, "freed", "node "+owner.Node+" does not exist")
		case user >= 0:
			add("slot "+slot, "kept", "on "+owner.Node+", used by Pod "+pods[user].Name)
		case slices.Contains(m.report.Unread, "pods"):
			add("slot "+slot, "kept", "on "+owner.Node+", if a Pod uses it")
		default:
			add("slot "+slot, "freed", "no Pod on "+owner.Node+" uses it")
		}
	}
}

// judge says what happens to the objects of an Instance, or of the Configuration itself:
// those that are rendered for it, and those that exist.
func judge(configuration, instance string, desired []map[string]any, found existing) []objectOutcome {
	var all []objectOutcome
	add := func(object, outcome, detail string) {
		all = append(all, objectOutcome{configuration, object, outcome, detail})
	}
	there, hasJob := map[string]bool{}, false // whether each has terminated, by KIND NAME
	namespace, name, _ := strings.Cut(configuration, "/")
	isOwn := func(object metav1.Object) bool {
		labels := object.GetLabels()
		named := instance != "" || labels[v0.LabelConfiguration] == name
		return labels["controller"] == "akri.sh" && object.GetNamespace() == namespace && labels[v0.LabelInstance] == instance && named
	}
	for i := range found.pods {
		if pod := &found.pods[i]; isOwn(pod) {
			there["Pod "+pod.Name] = view.Terminated(pod)
		}
	}
	for i := range found.others {
		if object := &found.others[i]; isOwn(object) {
			there[object.GetKind()+" "+object.GetName()] = false
			hasJob = hasJob || object.GetKind() == "Job"
		}
	}
	for _, content := range desired {
		object := unstructured.Unstructured{Object: content}
		what, kind := object.GetKind()+" "+object.GetName(), object.GetKind()
		terminated, exists := there[what]
		delete(there, what)
		switch problems := schema.CheckBuiltIn(content, nil); {
		case len(problems) > 0:
			add(what, "rejected", problems[0].Error())
		case terminated:
			add(what, "deleted", "it has terminated and is replaced")
		case exists:
			add(what, "kept", map[string]string{"Pod": "not restarted", "Service": "with its address"}[kind])
		case kind == "Job" && hasJob: // Akri's has another name
		default:
			add(what, "created", map[string]string{"Service": "it exists as long as the device, and not only while a broker runs"}[kind])
		}
	}
	for _, what := range slices.Sorted(maps.Keys(there)) {
		if strings.HasPrefix(what, "Job ") {
			add(what, "kept", "not run again")
		} else if strings.HasPrefix(what, "Service ") {
			add(what, "left", "no template renders it: it is deleted with its owner")
		} else {
			add(what, "left", "no template renders it: the capacity has no slot for it, or its node does not see the device")
		}
	}
	return all
}
