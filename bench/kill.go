package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/kubebox/cluster"
)

// Of the part kill: how many Instances come or go at once, how many there are at
// most, when the latest kill is, and how long the next controller may take to
// put everything right.
const (
	killStep      = 15
	killMost      = 60
	latestKill    = 500 * time.Millisecond
	killPatience  = 60 * time.Second
	groupObject   = "group"
	editedVariant = "-b"
)

// killing is what should be there, kept beside what the API server has.
type killing struct {
	*bench
	random    *rand.Rand
	namespace string
	devices   []string
	next      int
	variant   string // suffix of the ConfigMaps' names, which an edit changes
	value     string // of the ConfigMaps' channel, likewise
}

// kill kills the controller at random points of creation, edit and deletion, and
// looks at what the next one makes of it.
func (b *bench) kill(ctx context.Context) error {
	if b.Kills == 0 {
		return nil
	}
	if err := b.leave(ctx); err != nil {
		return err
	}
	if err := b.cluster.Do(ctx, cluster.Run, "kube-controller-manager"); err != nil {
		return err
	}
	k := &killing{bench: b, random: rand.New(rand.NewPCG(b.Seed, 0)), variant: "", value: "1"}
	if err := k.begin(ctx); err != nil {
		return err
	}
	b.say("kill: seed %d", b.Seed)
	failures, slowest := []string(nil), time.Duration(0)
	actions := map[string]int{}
	for round := range b.Kills {
		action, err := k.act(ctx)
		if err != nil {
			return err
		}
		actions[action]++
		delay := time.Duration(k.random.Int64N(int64(latestKill)))
		if !sleep(ctx, delay) {
			return ctx.Err()
		}
		if err := b.running.end(syscall.SIGKILL); err != nil {
			return err
		}
		began := time.Now()
		if _, err := b.startController(); err != nil {
			return err
		}
		complaint, err := k.awaitTrue(ctx)
		if err != nil {
			return err
		}
		took := time.Since(began)
		slowest = max(slowest, took)
		b.say("kill %d: %s, after %v; all true again after %.1f s %s", round+1, action, delay.Round(time.Millisecond), took.Seconds(), complaint)
		if complaint != "" {
			failures = append(failures, fmt.Sprintf("kill %d (%s, after %v): %s", round+1, action, delay, complaint))
		}
	}
	// What is true must stay so.
	if !sleep(ctx, 3*time.Second) {
		return ctx.Err()
	}
	complaint, err := k.check(ctx)
	if err != nil {
		return err
	}
	if complaint != "" {
		failures = append(failures, "at the end: "+complaint)
	}
	b.add(figure{
		What:       fmt.Sprintf("killed %d times (seed %d)", b.Kills, b.Seed),
		Controller: fmt.Sprintf("%d failures; slowest recovery %.1f s", len(failures), slowest.Seconds()),
		Bar:        "no orphan, no missing, no duplicate", Met: len(failures) == 0,
		Raw: map[string]any{"failures": failures, "seed": b.Seed, "actions": actions, "slowest_seconds": slowest.Seconds()},
	})
	for _, failure := range failures {
		b.say("%s", failure)
	}
	return b.stopController()
}

func (k *killing) begin(ctx context.Context) error {
	k.namespaces++
	k.namespace = fmt.Sprintf("kill-%d", k.namespaces)
	if _, err := k.admin.Resource(namespaces).Create(ctx, object("v1", "Namespace", "", k.namespace, nil), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make a namespace: %w", err)
	}
	if err := k.configure(ctx); err != nil {
		return err
	}
	if _, err := k.startController(); err != nil {
		return err
	}
	if err := k.create(ctx, killStep); err != nil {
		return err
	}
	complaint, err := k.awaitTrue(ctx)
	if err == nil && complaint != "" {
		err = fmt.Errorf("before the first kill: %s", complaint)
	}
	return err
}

// configure writes the Configuration as it should be now.
func (k *killing) configure(ctx context.Context) error {
	configuration := newConfiguration(k.namespace)
	templates, _, _ := unstructured.NestedSlice(configuration.Object, "spec", "instanceBrokerResources")
	first := templates[0].(map[string]any)
	first["metadata"] = map[string]any{"name": "{{INSTANCE_NAME}}" + k.variant}
	first["data"] = map[string]any{"device": "{{INSTANCE_PROPERTIES.DEVICE}}", "channel": k.value}
	spec := configuration.Object["spec"].(map[string]any)
	spec["instanceBrokerResources"] = templates
	spec["configurationBrokerResources"] = []any{map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": groupObject}, "data": map[string]any{"channel": k.value},
	}}
	_, err := k.admin.Resource(configurations).Namespace(k.namespace).
		Apply(ctx, configurationName, configuration, metav1.ApplyOptions{FieldManager: "bench", Force: true})
	if err != nil {
		return fmt.Errorf("write the Configuration: %w", err)
	}
	return nil
}

func (k *killing) create(ctx context.Context, count int) error {
	first := k.next
	k.next += count
	for i := range count {
		k.devices = append(k.devices, deviceName(first+i))
	}
	return k.createInstances(ctx, k.namespace, first, count, func(*unstructured.Unstructured) {})
}

// act does something that gives the controller work.
func (k *killing) act(ctx context.Context) (string, error) {
	switch choice := k.random.IntN(3); {
	case len(k.devices) == 0, choice == 0 && len(k.devices) < killMost:
		return "create", k.create(ctx, 1+k.random.IntN(killStep))
	case choice == 1:
		return k.edit(ctx)
	}
	return k.delete(ctx)
}

// edit gives all ConfigMaps another value and, every other time, other names.
func (k *killing) edit(ctx context.Context) (string, error) {
	k.value += "1"
	action := "edit"
	if k.random.IntN(2) == 0 {
		action = "edit of names"
		if k.variant == "" {
			k.variant = editedVariant
		} else {
			k.variant = ""
		}
	}
	return action, k.configure(ctx)
}

// delete removes some Instances, at times all.
func (k *killing) delete(ctx context.Context) (string, error) {
	count := 1 + k.random.IntN(len(k.devices))
	action := "deletion"
	if k.random.IntN(4) == 0 {
		count, action = len(k.devices), "deletion of all"
	}
	k.random.Shuffle(len(k.devices), func(i, j int) { k.devices[i], k.devices[j] = k.devices[j], k.devices[i] })
	for _, name := range k.devices[:count] {
		err := k.admin.Resource(instances).Namespace(k.namespace).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("delete an Instance: %w", err)
		}
	}
	k.devices = slices.Clone(k.devices[count:])
	return action, nil
}

// awaitTrue waits until all is as it should be, and returns what is not if that
// takes too long.
func (k *killing) awaitTrue(ctx context.Context) (complaint string, err error) {
	for began := time.Now(); ; {
		if complaint, err = k.check(ctx); err != nil || complaint == "" || time.Since(began) > killPatience {
			return complaint, err
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return "", ctx.Err()
		}
	}
}

// check compares what is there with what should be: names, owners and values.
func (k *killing) check(ctx context.Context) (complaint string, err error) {
	owners := map[string]types.UID{}
	there, err := k.list(ctx, instances)
	if err != nil {
		return "", err
	}
	for _, instance := range there {
		owners[instance.GetName()] = instance.GetUID()
	}
	var complaints []string
	for _, name := range k.devices {
		if _, found := owners[name]; !found {
			return "", fmt.Errorf("Instance %s has gone by itself", name)
		}
	}
	if len(owners) != len(k.devices) {
		complaints = append(complaints, fmt.Sprintf("%d Instances, want %d", len(owners), len(k.devices)))
	}
	for _, child := range children {
		objects, err := k.list(ctx, child)
		if err != nil {
			return "", err
		}
		wanted := map[string]string{} // object to Instance
		for _, name := range k.devices {
			suffix := ""
			if child == configMaps {
				suffix = k.variant
			}
			wanted[name+suffix] = name
		}
		group := child == configMaps && len(k.devices) > 0
		for _, o := range objects {
			name := o.GetName()
			if name == groupObject && group {
				group = false
				if value, _, _ := unstructured.NestedString(o.Object, "data", "channel"); value != k.value {
					complaints = append(complaints, "the group's object is not up to date")
				}
				continue
			}
			parent, found := wanted[name]
			if !found {
				complaints = append(complaints, fmt.Sprintf("orphan or duplicate: %s %s", child.Resource, name))
				continue
			}
			delete(wanted, name)
			if owner := metav1.GetControllerOf(&o); owner == nil || owner.UID != owners[parent] {
				complaints = append(complaints, fmt.Sprintf("%s %s is not owned by its Instance", child.Resource, name))
			}
			if value, _, _ := unstructured.NestedString(o.Object, "data", "channel"); child == configMaps && value != k.value {
				complaints = append(complaints, fmt.Sprintf("%s %s is not up to date", child.Resource, name))
			}
		}
		if group {
			complaints = append(complaints, "missing: the group's object")
		}
		for name := range wanted {
			complaints = append(complaints, fmt.Sprintf("missing: %s %s", child.Resource, name))
		}
	}
	return summary(complaints), nil
}

// list lists a resource; of the children, those that Akri manages.
func (k *killing) list(ctx context.Context, resource schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
	options := metav1.ListOptions{}
	if resource != instances {
		options.LabelSelector = "app.kubernetes.io/managed-by=akri"
	}
	list, err := k.admin.Resource(resource).Namespace(k.namespace).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource.Resource, err)
	}
	return list.Items, nil
}

func summary(complaints []string) string {
	const most = 5
	slices.Sort(complaints)
	if len(complaints) > most {
		complaints = append(complaints[:most:most], fmt.Sprintf("and %d more", len(complaints)-most))
	}
	return strings.Join(complaints, "; ")
}
