package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// The limits for this part.
const (
	maxJoinMedian   = 50  // milliseconds
	maxBytesPerNode = 100 // of a shared Instance
	// maxLeftBehind is the bytes that a node may leave behind in an Instance. The
	// resourceVersion may gain a digit.
	maxLeftBehind = 1
)

// join has nodes join shared devices one after the other, and leave them again.
func (f *fleet) join(ctx context.Context) error {
	if err := f.addOthers(ctx); err != nil {
		return err
	}
	before, err := f.sizes(ctx)
	if err != nil {
		return err
	}
	mark, joins := f.b.log.mark(), f.b.Joins
	var offered []float64
	for range joins {
		began := time.Now()
		if err := f.start(ctx, 1, f.late); err != nil {
			return err
		}
		if _, err := f.awaitOffered(ctx, f.nodes[len(f.nodes)-1:]); err != nil {
			return err
		}
		offered = append(offered, milliseconds(time.Since(began)))
	}
	requests, err := f.b.log.awaitQuiet(ctx, mark, agentName, quietFor)
	if err != nil {
		return err
	}
	if err := f.audit(ctx, f.shape.Nodes+f.shape.Others+joins); err != nil {
		return err
	}
	joined, err := f.sizes(ctx)
	if err != nil {
		return err
	}
	took, err := joinTimes(requests, f.shape.Nodes, joins*f.shape.Devices)
	if err != nil {
		return err
	}
	bare, err := f.bareJoins(ctx)
	if err != nil {
		return err
	}
	f.add(joinRow(took, offered, bare, requests))
	f.add(sizeRow(before, joined, f.shape.Nodes+f.shape.Others, joins))
	return f.leave(ctx, before)
}

// addOthers adds the nodes without agents to the Instances, in the form in which agents add
// themselves, and waits until all agents have noticed.
func (f *fleet) addOthers(ctx context.Context) error {
	if f.shape.Others == 0 {
		return nil
	}
	all, err := f.instances(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		instance := &all[i]
		nodes, _, err := unstructured.NestedStringSlice(instance.Object, "spec", "nodes")
		if err != nil {
			return err
		}
		labels := instance.GetLabels()
		for number := range f.shape.Others {
			node := f.node(len(f.nodes) + f.b.Joins + number).Name()
			nodes = append(nodes, node)
			labels["node.akri.sh/"+node] = ""
		}
		instance.SetLabels(labels)
		if err := unstructured.SetNestedStringSlice(instance.Object, nodes, "spec", "nodes"); err != nil {
			return err
		}
		update := metav1.UpdateOptions{FieldManager: "akri-agent"} // as that of agents
		if _, err := f.b.admin.Resource(instances).Namespace(f.namespace).Update(ctx, instance, update); err != nil {
			return fmt.Errorf("add nodes to the Instance %s: %w", instance.GetName(), err)
		}
	}
	_, err = f.b.log.awaitQuiet(ctx, f.b.log.mark(), agentName, quietFor)
	return err
}

// bareJoins has a bare client add another node to one of the Instances with a patch like that
// of an agent, and remove it again, as often as nodes have joined. It returns the milliseconds
// of each addition.
func (f *fleet) bareJoins(ctx context.Context) ([]float64, error) {
	all, err := f.instances(ctx)
	if err != nil {
		return nil, err
	}
	instance, client := &all[0], f.b.admin.Resource(instances).Namespace(f.namespace)
	patch := func(operations string) error {
		bound := fmt.Sprintf(`[{"op":"test","path":"/metadata/uid","value":%q},{"op":"test","path":"/metadata/resourceVersion","value":%q},%s]`,
			instance.GetUID(), instance.GetResourceVersion(), operations)
		manager := metav1.PatchOptions{FieldManager: "akri-agent"} // as that of agents
		answer, err := client.Patch(ctx, instance.GetName(), types.JSONPatchType, []byte(bound), manager)
		if err != nil {
			return fmt.Errorf("patch the Instance %s: %w", instance.GetName(), err)
		}
		instance = answer
		return nil
	}
	nodes, _, err := unstructured.NestedStringSlice(instance.Object, "spec", "nodes")
	if err != nil {
		return nil, err
	}
	node := f.node(len(f.nodes) + f.shape.Others).Name()
	label := "/metadata/labels/node.akri.sh~1" + node
	join := fmt.Sprintf(`{"op":"add","path":"/spec/nodes/-","value":%q},{"op":"add","path":%q,"value":""}`, node, label)
	leave := fmt.Sprintf(`{"op":"remove","path":"/spec/nodes/%d"},{"op":"remove","path":%q}`, len(nodes), label)
	var took []float64
	for range f.b.Joins {
		began := time.Now()
		if err := patch(join); err != nil {
			return nil, err
		}
		took = append(took, milliseconds(time.Since(began)))
		if err := patch(leave); err != nil {
			return nil, err
		}
	}
	return took, nil
}

// joinRow returns the row for the milliseconds of all joins, those until a new agent
// has offered all its resources, those of a bare client's patches, and the requests meanwhile.
func joinRow(took, offered, bare []float64, requests []auditLine) figure {
	p50, p95 := percentile(took, 50), percentile(took, 95)
	return figure{
		What: fmt.Sprintf("a node joins an Instance, p50 / p95 of %d", len(took)),
		Measured: fmt.Sprintf("%.1f / %.1f ms, %.2f writes; an agent from its start to the last resource %.0f / %.0f ms", p50, p95,
			float64(len(writes(requests)))/float64(len(took)), percentile(offered, 50), percentile(offered, 95)),
		Bare: fmt.Sprintf("one patch %.1f / %.1f ms", percentile(bare, 50), percentile(bare, 95)),
		Bar:  fmt.Sprintf("p50 <= %d ms", maxJoinMedian), Met: p50 <= maxJoinMedian,
		Raw: map[string]any{"ms": took, "bare_ms": bare, "requests": tallyOutcomes(requests), "offered_ms": offered},
	}
}

// sizeRow returns the row for the bytes by which nodes that joined others have
// increased an Instance.
func sizeRow(before, joined meanSize, nodes, joins int) figure {
	all, managed := float64(joined.all-before.all)/float64(joins), float64(joined.managed-before.managed)/float64(joins)
	return figure{
		What: "bytes of a shared Instance per node",
		Measured: fmt.Sprintf("%.0f, including %.0f of managedFields; the Instance with %d nodes %.1f KB",
			all, managed, nodes+joins, float64(joined.all)/1e3),
		Bar: fmt.Sprintf("<= %d", maxBytesPerNode), Met: all <= maxBytesPerNode,
		Raw: map[string]any{"bytes_per_node": all, "managed_bytes_per_node": managed, "bytes": joined.all},
	}
}

// leave has the nodes that joined leave, and compares what remains with the size
// before they joined.
func (f *fleet) leave(ctx context.Context, before meanSize) error {
	mark := f.b.log.mark()
	f.late.Set(nil)
	requests, err := f.b.log.awaitQuiet(ctx, mark, agentName, quietFor)
	if err != nil {
		return err
	}
	if err := f.audit(ctx, f.shape.Nodes+f.shape.Others); err != nil {
		return err
	}
	left, err := f.sizes(ctx)
	if err != nil {
		return err
	}
	f.add(leaveRow(before, left, f.b.Joins, f.shape.Devices, requests))
	return nil
}

// leaveRow returns the row for what nodes have left behind in each of the devices'
// Instances, and the requests meanwhile.
func leaveRow(before, left meanSize, nodes, devices int, requests []auditLine) figure {
	behind := float64(left.all-before.all) / float64(nodes)
	return figure{
		What:     "bytes that a node leaves behind in an Instance",
		Measured: fmt.Sprintf("%.1f; %.2f writes per Instance", behind, float64(len(writes(requests)))/float64(nodes*devices)),
		Bar:      "0", Met: behind <= maxLeftBehind,
		Raw: map[string]any{"bytes": behind, "requests": tallyOutcomes(requests)},
	}
}

// meanSize is the mean size of the Instances as JSON, and that of their managedFields.
type meanSize struct{ all, managed int }

func (f *fleet) sizes(ctx context.Context) (meanSize, error) {
	all, err := f.instances(ctx)
	if err != nil {
		return meanSize{}, err
	}
	return meanSizeOf(all)
}

// meanSizeOf returns the mean size of at least one Instance.
func meanSizeOf(all []unstructured.Unstructured) (meanSize, error) {
	var sum meanSize
	for i := range all {
		text, err := all[i].MarshalJSON()
		if err != nil {
			return meanSize{}, err
		}
		managed, _, err := unstructured.NestedSlice(all[i].Object, "metadata", "managedFields")
		if err != nil {
			return meanSize{}, err
		}
		managedText, err := json.Marshal(managed)
		if err != nil {
			return meanSize{}, err
		}
		sum.all += len(text)
		sum.managed += len(managedText)
	}
	return meanSize{all: sum.all / len(all), managed: sum.managed / len(all)}, nil
}

// joinTimes returns how long the agents of nodes with at least the given number took
// to write themselves into each Instance, in milliseconds: from the beginning of the
// first attempt to the response of the first that succeeded. It returns an error unless
// there are want of them.
func joinTimes(requests []auditLine, first, want int) ([]float64, error) {
	type join struct {
		began time.Time
		done  bool
	}
	joins := map[string]*join{}
	var took []float64
	for _, r := range requests {
		number, err := strconv.Atoi(r.Version)
		if err != nil || number < first || r.Resource != "instances" || !r.isWrite() {
			continue
		}
		key := r.Version + "/" + r.Name
		j := joins[key]
		if j == nil {
			j = &join{began: r.Began}
			joins[key] = j
		}
		if !j.done && r.Code < 300 {
			j.done = true
			took = append(took, milliseconds(r.Done.Sub(j.began)))
		}
	}
	if len(took) != want {
		return nil, fmt.Errorf("found the requests of %d joins, want %d", len(took), want)
	}
	return took, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
