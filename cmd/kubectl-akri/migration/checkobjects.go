package migration

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/schema"
	"akri.sh/akri/discovery/builtin"
)

// akriNamespace is where the original Akri reads Secrets and ConfigMaps of discovery
// properties that have no namespace.
const akriNamespace = "default"

// configuration checks a Configuration.
func (c *checker) configuration(parsed *configuration) {
	place := parsed.place()
	if fields := parsed.oldFields(); len(fields) > 0 {
		c.add(Blocks, place, "save it, and write it again with the fields of Akri 0.13",
			"%s: fields of Akri 0.6 and older, which are lost at the next write", strings.Join(fields, ", "))
	}
	if parsed.failure != nil {
		c.add(Blocks, place, "correct the field", "the controller cannot read it: %v", parsed.failure)
	}
	if parsed.pod && parsed.job {
		c.add(Blocks, place, "keep one of them", "it has brokerPodSpec and brokerJobSpec, and neither is created")
	}
	if parsed.GetDeletionTimestamp() != nil {
		c.add(Changes, place, "take its deletion as a fact, or save it and create it again afterwards",
			"it is being deleted, which is completed once the finalizers of Akri's agents are off")
	}
	c.names(parsed)
	c.capacity(parsed)
	c.credentials(parsed)
	reference := Reference{"ServiceAccount", parsed.Namespace, parsed.account}
	if exists, known := c.facts.Found[reference]; parsed.account != "" && known && !exists {
		c.add(Changes, place, "create the ServiceAccount", "the ServiceAccount %s of its brokers does not exist: "+
			"they cannot be created, and edits are rejected until it does", parsed.account)
	}
	c.schema(parsed)
	if validate := builtin.Validators[parsed.handler]; validate != nil {
		if err := validate(parsed.details); err != nil {
			c.add(Changes, place, "correct discoveryDetails; Akri's own handler goes on reading them as before",
				"edits are rejected, because the built-in handler %s refuses its discoveryDetails: %v", parsed.handler, err)
		}
	}
}

// maxName is the length of the name of a Configuration whose Instances fit into the name
// of a resource.
const maxName = 56

func (c *checker) names(parsed *configuration) {
	if strings.Contains(parsed.Name, ".") {
		c.add(Changes, parsed.place(), "create it under another name when it suits you: its Instances and resources get new names",
			"a name with dots: it goes on working and can be deleted, but not created again")
	}
	if length := len(parsed.Name); length > maxName {
		c.add(Changes, parsed.place(), fmt.Sprintf("create it under a name with at most %d characters", maxName),
			"a name with %d characters: its devices keep their Instances, but new devices get none", length)
	}
}

// maxCapacity is the most that the schema allows.
const maxCapacity = 1000

func (c *checker) capacity(parsed *configuration) {
	switch {
	case parsed.capacity < 1:
		c.add(Changes, parsed.place(), "set a capacity of at least 1", "capacity %d counts as 1, and edits are rejected", parsed.capacity)
	case parsed.capacity > maxCapacity:
		c.add(Changes, parsed.place(), fmt.Sprintf("set a capacity of at most %d", maxCapacity),
			"capacity %d is kept as long as it is not edited", parsed.capacity)
	}
}

// credentials checks where discovery properties come from.
func (c *checker) credentials(parsed *configuration) {
	place := parsed.place()
	for _, s := range parsed.sources {
		what := fmt.Sprintf("discovery property %s: %s %s", s.property, s.kind, s.name)
		exists, known := c.facts.Found[s.inOwn(parsed.Namespace)]
		switch {
		case s.namespace == "" && parsed.Namespace != akriNamespace && !exists && known && !s.optional:
			c.add(Blocks, place, fmt.Sprintf("copy it to namespace %s", parsed.Namespace),
				"%s has no namespace: Akri reads it in %s, this one in %s, where it does not exist; discovery would fail",
				what, akriNamespace, parsed.Namespace)
		case s.namespace == "" && parsed.Namespace != akriNamespace:
			c.add(Changes, place, fmt.Sprintf("compare it with the one in %s", akriNamespace),
				"%s has no namespace: Akri reads it in %s, this one in %s", what, akriNamespace, parsed.Namespace)
		case s.namespace != "" && s.namespace != parsed.Namespace:
			c.add(Blocks, place, fmt.Sprintf("copy it to namespace %s, or run the agents with --allow-cross-namespace-properties", parsed.Namespace),
				"%s is in namespace %s, where agents do not read without a flag; discovery would fail", what, s.namespace)
		case known && !exists && !s.optional:
			c.add(Changes, place, "create it", "%s does not exist, so discovery fails, as with Akri", what)
		}
	}
	if len(parsed.sources) > 0 {
		c.add(Changes, place, "grant it, as the plan does: kubectl akri rbac -n "+parsed.Namespace+" "+parsed.Name+" | kubectl apply -f -",
			"the agents need permission to read %s for discoveryProperties", plural(len(parsed.sources), "an object", "objects"))
	}
}

// schema reports what the new definition rejects and no other finding explains. Akri's
// stored what it liked; such a Configuration can be edited where it is valid.
func (c *checker) schema(parsed *configuration) {
	problems, _ := schema.Check(parsed.Object)
	for _, problem := range problems {
		path := problem.Place.String()
		explained := path == "metadata.name" || path == "spec.capacity" || path == "spec.brokerSpec" ||
			slices.Contains(parsed.oldFields(), path)
		if !explained {
			c.add(Changes, parsed.place(), problem.Hint, "%s: %s; edits of it are rejected until it is corrected", path, problem.Cause)
		}
	}
}

// instances checks the Instances and what Akri's agents left on all objects.
func (c *checker) instances() {
	f := c.facts
	lost := map[string]*remains{}
	for i := range f.Configurations {
		object := &f.Configurations[i]
		c.finalizers(lost, object.GetFinalizers(), "Configuration "+object.GetNamespace()+"/"+object.GetName())
	}
	for i := range f.Instances {
		instance := &f.Instances[i]
		place := "Instance " + instance.Namespace + "/" + instance.Name
		c.finalizers(lost, instance.Finalizers, place)
		if instance.Spec.CDIName == "" {
			c.add(Blocks, place, "upgrade Akri to 0.13 first, or delete the Instance: it is created again, and its brokers restart",
				"it has no cdiName, as before Akri 0.13, so agents cannot write it")
		}
		if instance.DeletionTimestamp != nil {
			c.add(Changes, place, "", "it is being deleted, which is completed once the finalizers of Akri's agents are off")
		}
		if len(instance.Spec.Nodes) == 0 && instance.DeletionTimestamp == nil {
			c.add(Changes, place, "", "no node sees the device, and Akri has left the Instance: it is deleted, with its brokers")
		}
		for _, slot := range slices.Sorted(maps.Keys(instance.Spec.DeviceUsage)) {
			owner, err := v0.ParseOwner(string(instance.Spec.DeviceUsage[slot]))
			if err != nil {
				c.add(Changes, place, "set it to \"\"", "slot %s has the owner %q, which means nothing", slot, instance.Spec.DeviceUsage[slot])
			} else if !owner.Free() && f.gone(owner.Node) {
				remainsOf(lost, owner.Node).slots = append(remainsOf(lost, owner.Node).slots, slot)
			}
		}
	}
	for _, node := range slices.Sorted(maps.Keys(lost)) {
		c.lost(node, lost[node])
	}
}

// remains are what a node that no longer exists has left.
type remains struct {
	finalizers []string
	slots      []string
}

func remainsOf(all map[string]*remains, node string) *remains {
	if all[node] == nil {
		all[node] = &remains{}
	}
	return all[node]
}

// finalizers records those of nodes that no longer exist. Akri's are bare node names;
// qualified ones belong to others.
func (c *checker) finalizers(lost map[string]*remains, finalizers []string, place string) {
	for _, finalizer := range finalizers {
		if !strings.Contains(finalizer, "/") && c.facts.gone(finalizer) {
			remainsOf(lost, finalizer).finalizers = append(remainsOf(lost, finalizer).finalizers, place)
		}
	}
}

func (c *checker) lost(node string, left *remains) {
	if n := len(left.finalizers); n > 0 {
		c.add(Changes, "node "+node, "",
			"the node does not exist, and its finalizer keeps %s from being deleted: it is taken off", list(left.finalizers))
	}
	if n := len(left.slots); n > 0 {
		c.add(Changes, "node "+node, "", "the node does not exist and owns %s: %s freed", list(left.slots), plural(n, "it is", "they are"))
	}
}

// list names the first of many.
func list(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
