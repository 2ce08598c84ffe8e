package attacks

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/clustertest"
)

// exploredKinds are the kinds that the test checks for new objects: there must be none
// outside the tenant's namespace, and inside it only those that the tenant may create.
var exploredKinds = []string{
	"Pod", "Secret", "ConfigMap", "Service", "ServiceAccount", "PersistentVolumeClaim", "Namespace", "Node", "Deployment", "DaemonSet",
	"StatefulSet", "ReplicaSet", "Job", "CronJob", "Ingress", "NetworkPolicy", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding",
	"CustomResourceDefinition", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
}

// bystanders is the value in the ConfigMaps of the other user.
const bystanders = "a bystander's"

// tenant is the exploration by a user who may write Configurations and ConfigMaps in
// one namespace.
type tenant struct {
	*world
	user, other *user
	random      *generator
	// before are the UIDs of all objects before the exploration, canaries are
	// objects that must not change.
	before   map[string]bool
	canaries []object
	// recent are the last requests, for the report.
	recent []string
	live   []string
	next   int
}

// A tenant who may only write Configurations and ConfigMaps gains nothing by random
// hostile Configurations, and disturbs nobody.
func TestTenant(t *testing.T) {
	clustertest.Full(t)
	length, seed := clustertest.Soak(t, 20*time.Second)
	x := newTenant(t, seed)
	x.explore(length / 2)
	x.skipWebhook() // only the schema, the policies and the controller are left
	x.explore(length / 2)
	x.useWebhook()
	x.converged("after-tenant")
	x.check()
	x.hiddenEverywhere()
	if t.Failed() {
		t.Logf("the last requests:\n%s", strings.Join(x.recent, "\n"))
	}
}

// explore sends random requests for a while.
func (x *tenant) explore(length time.Duration) {
	requests, admitted := 0, 0
	for deadline := time.Now().Add(length); time.Now().Before(deadline) && !x.t.Failed(); requests++ {
		if a := x.act(); a.ok() {
			admitted++
		}
		if requests%25 == 24 {
			x.check()
		}
		if requests%100 == 99 {
			x.hiddenEverywhere()
		}
	}
	x.t.Logf("%d requests, %d succeeded", requests, admitted)
}

// newTenant creates the tenant, the canaries and another user.
func newTenant(t *testing.T, seed uint64) *tenant {
	w := newWorld(t)
	others := newWorld(t) // a namespace that the tenant has no rights in
	x := &tenant{world: w, before: map[string]bool{}}
	x.user = w.as("tenant", configurationsOnly, rule{"", "configmaps", "get,list,create,update,patch,delete"})
	x.other = others.as("bystander", configurationsOnly, writes("", "configmaps"))
	for _, place := range []*world{w, others} {
		for _, manifest := range []string{
			"{apiVersion: v1, kind: Secret, metadata: {name: canary}, stringData: {password: " + w.canary() + "}}",
			"{apiVersion: v1, kind: Service, metadata: {name: canary}, spec: {ports: [{port: 80}]}}",
			"{apiVersion: v1, kind: ServiceAccount, metadata: {name: canary}}",
		} {
			x.canaries = append(x.canaries, place.must(place.admin.create(parse(manifest))).object())
		}
	}
	x.canaries = append(x.canaries,
		others.must(others.admin.create(parse(configMap("canary", "v")))).object(),
		others.find("ConfigMap", "kube-root-ca.crt"))
	others.must(
		others.admin.create(configuration("others", spec{devices: []string{"o"}, instance: []string{configMap("{{INSTANCE_NAME}}", "v")}})),
	)
	instance := others.instances("others", 1)[0]
	others.await("others", "Ready", "True")
	other := others.find("ConfigMap", instance.name())
	other["kind"] = "ConfigMap"
	x.canaries = append(x.canaries, other)
	for _, kindName := range exploredKinds {
		for _, o := range x.list(kindName, "") {
			x.before[o.uid()] = true
		}
	}
	x.random = &generator{
		Rand: rand.New(rand.NewPCG(seed, 1)), own: w.namespace,
		namespaces: []string{w.namespace, others.namespace}, names: []string{"canary", instance.name(), "others", "akri-webhook"},
	}
	return x
}

// act sends one random request as the tenant.
func (x *tenant) act() answer {
	g := x.random
	if len(x.live) > 8 || len(x.live) > 0 && g.chance(15) {
		victim := g.one(x.live...)
		x.live = slices.DeleteFunc(x.live, func(name string) bool { return name == victim })
		x.user.patch("Configuration", x.namespace, victim, "metadata: {finalizers: null}")
		return x.note("delete", victim, x.user.delete("Configuration", x.namespace, victim))
	}
	name := fmt.Sprintf("tenant-%d-%s", x.next, strings.TrimPrefix(x.namespace, "attack-"))
	if len(x.live) > 0 && g.chance(35) {
		name = g.one(x.live...)
	} else if g.chance(3) {
		name = "others" // in use in another namespace
	}
	x.next++
	c := g.configuration(name)
	var a answer
	switch g.IntN(12) {
	case 0:
		a = x.note("dry run", name, x.user.create(c, "dryRun", "All"), c)
	case 1:
		elsewhere := c.set(g.namespaces[1], "metadata", "namespace")
		a = x.note("elsewhere", name, x.user.create(elsewhere), elsewhere)
		if a.ok() {
			x.t.Errorf("a Configuration in another namespace: %v", a)
		}
		return a
	case 2:
		a = x.note("status", name, x.user.patch("Configuration/status", x.namespace, "others", "status: {instances: 1}"))
		return a
	default:
		a = x.note("apply", name, x.user.apply(c), c)
	}
	if a.ok() && !slices.Contains(x.live, name) {
		x.live = append(x.live, name)
	}
	if strings.Contains(a.text, x.canary()) || strings.Contains(strings.Join(a.warnings, ""), x.canary()) {
		x.t.Errorf("an answer has the canary: %v", a)
	}
	return a
}

// note remembers a request for the report.
func (x *tenant) note(verb, name string, a answer, body ...object) answer {
	text := fmt.Sprintf("%s %s: %.200s", verb, name, a)
	for _, o := range body {
		text += fmt.Sprintf("\n  %.3000s", o.json())
	}
	x.recent = append(x.recent, text)
	x.recent = x.recent[max(0, len(x.recent)-30):]
	return a
}

// check checks that nothing has appeared or changed that the tenant could not have
// created or changed, and that another user is answered in time.
func (x *tenant) check() {
	for _, kindName := range exploredKinds {
		for _, o := range x.list(kindName, "") {
			if x.before[o.uid()] || kindName == "ConfigMap" && (o.namespace() == x.namespace || o.text("data", "k") == bystanders) {
				continue
			}
			x.t.Errorf("a new %s: %.2000s", kindName, o.json())
			x.before[o.uid()] = true
		}
	}
	for _, o := range x.canaries {
		x.untouched(o)
	}
	a := x.other.apply(configuration("bystander-"+strings.TrimPrefix(x.namespace, "attack-"), spec{
		devices: []string{"b"}, instance: []string{configMap("{{INSTANCE_NAME}}", bystanders)},
		more: fmt.Sprintf("{brokerProperties: {ROUND: '%d'}}", x.next),
	}).set(x.random.namespaces[1], "metadata", "namespace"))
	if !a.ok() || a.took > maxAnswer {
		x.t.Errorf("another user's apply: %v", a)
	}
}

// hiddenEverywhere checks that the canaries' value is in no status, Event or log.
func (x *tenant) hiddenEverywhere() {
	x.hidden()
	events := x.admin.send(request{method: http.MethodGet, path: pathOf("Event", "", "")})
	if strings.Contains(events.text, x.canary()) {
		x.t.Error("an Event has the canary")
	}
}
