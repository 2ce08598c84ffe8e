package migration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Report says what a move to this Akri does to a cluster.
type Report struct {
	Installation Installation    `json:"installation"`
	Findings     []Finding       `json:"findings"`
	Objects      []ObjectOutcome `json:"objects"`
	Unread       []Unread        `json:"unread,omitempty"`
}

// Installation is the original Akri in a cluster.
type Installation struct {
	Version   string   `json:"version,omitempty"`
	Namespace string   `json:"namespace,omitempty"`
	Release   string   `json:"release,omitempty"`
	Chart     string   `json:"chart,omitempty"`
	Workloads []Object `json:"workloads"`
	Handlers  []string `json:"handlers"`
	// Running are the Pods of its controller and agents that there still are.
	Running int32 `json:"running"`
}

// Check returns the report of a cluster.
func Check(f *Facts) *Report {
	report := &Report{Installation: installation(f), Unread: f.Unread, Findings: []Finding{}, Objects: []ObjectOutcome{}}
	c := &checker{facts: f}
	c.installed(report.Installation)
	c.definitions()
	c.handlers()
	for i := range f.Configurations {
		parsed := parse(&f.Configurations[i])
		c.configuration(&parsed)
		report.Objects = append(report.Objects, c.outcomes(&parsed)...)
	}
	c.instances()
	sortFindings(c.findings)
	report.Findings = append(report.Findings, c.findings...)
	return report
}

// checker collects findings.
type checker struct {
	facts    *Facts
	findings []Finding
}

// add adds a finding, once.
func (c *checker) add(severity Severity, place, remedy, cause string, arguments ...any) {
	finding := Finding{severity, place, fmt.Sprintf(cause, arguments...), remedy}
	if !slices.Contains(c.findings, finding) {
		c.findings = append(c.findings, finding)
	}
}

// installation describes the Akri that is there.
func installation(f *Facts) Installation {
	is := Installation{Workloads: []Object{}, Handlers: []string{}}
	for _, role := range []Role{RoleController, RoleAgent, RoleWebhook, RoleHandler} {
		for _, w := range f.workloads(role) {
			is.Workloads = append(is.Workloads, w.object())
			if role != RoleHandler {
				is.Version = cmp.Or(is.Version, w.version())
				is.Namespace = cmp.Or(is.Namespace, w.Namespace)
			}
			switch role {
			case RoleHandler:
				is.Handlers = append(is.Handlers, cmp.Or(w.handler(), w.Name))
			case RoleAgent:
				is.Handlers = append(is.Handlers, w.embedded()...)
				is.Running += w.Running
			case RoleController:
				is.Running += w.Running
			}
		}
	}
	if f.Release != nil {
		is.Release, is.Chart = f.Release.Name, f.Release.Chart
		is.Namespace = cmp.Or(is.Namespace, f.Release.Namespace)
	}
	slices.Sort(is.Handlers)
	is.Handlers = slices.Compact(is.Handlers)
	return is
}

// installed checks how Akri was installed, and what runs.
func (c *checker) installed(is Installation) {
	f := c.facts
	if tooOld(is.Version) {
		c.add(Blocks, "Akri "+is.Version, "upgrade Akri to 0.13 first: its agents write the Instances again",
			"before 0.13, Instances have neither cdiName nor capacity, which are required")
	}
	if release := f.Release; release != nil && len(release.Deletes) > 0 {
		c.add(Changes, "Helm release "+release.Namespace+"/"+release.Name,
			"never uninstall it: make Helm forget it, as kubectl akri migrate plan prints",
			"helm uninstall runs the hook %s, which deletes all Configurations of all namespaces", strings.Join(release.Deletes, ", "))
	}
	if release := f.Release; release != nil && len(release.Configurations) > 0 {
		c.add(Note, "Helm release "+release.Namespace+"/"+release.Name,
			"keep their manifests yourself, or let the new chart take them over (docs/migrate-from-akri.md)",
			"%s %s part of the release, and an uninstall would delete %s", strings.Join(release.Configurations, ", "),
			plural(len(release.Configurations), "is", "are"), plural(len(release.Configurations), "it", "them"))
	}
	for _, w := range f.Workloads {
		if tool := w.deployer(); tool != "" && !strings.HasPrefix(string(w.Role()), "new") {
			c.add(Blocks, w.Kind+" "+w.Namespace+"/"+w.Name, "suspend "+tool+" for Akri first, without pruning, and remove it there afterwards",
				"%s deploys it and would start it again next to the new one", tool)
		}
	}
	for _, webhook := range f.Webhooks {
		place := "ValidatingWebhookConfiguration " + webhook.Name
		switch {
		case webhook.Original:
			c.add(Changes, place, "delete it before the new Akri is installed",
				"Akri's webhook rejects Configurations with fields that it does not know, such as instanceBrokerResources%s",
				map[bool]string{true: ", and every write while it does not run"}[webhook.Fail])
		case webhook.Name != newRules:
			c.add(Note, place, "see that it admits fields that Akri does not have, such as instanceBrokerResources",
				"somebody else's webhook judges Configurations, and stays")
		}
	}
	for _, w := range f.workloads(RoleNewController) {
		if w.Running > 0 && slices.ContainsFunc(f.workloads(RoleController), func(old Workload) bool { return old.Running > 0 }) {
			c.add(Blocks, "Deployment "+w.Namespace+"/"+w.Name,
				"stop Akri's: kubectl scale -n "+is.Namespace+" deployment/"+oldController+" --replicas=0",
				"two controllers run, and each replaces the objects of the other")
		}
	}
	for _, node := range f.Down {
		c.add(Changes, "Node "+node, "run kubectl akri migrate clean again when it is back",
			"it is not Ready: the move leaves it out, and its agent is replaced when it is back")
	}
	for _, w := range f.workloads(RoleAgent) {
		for _, directory := range w.directories() {
			c.add(Changes, "DaemonSet "+w.Namespace+"/"+w.Name, "install with "+directory.key+"="+directory.value+", as the plan does",
				"the nodes have another directory than the default for %s", directory.key)
		}
	}
}

// definitions checks the CustomResourceDefinitions.
func (c *checker) definitions() {
	for _, d := range c.facts.Definitions {
		others := slices.DeleteFunc(slices.Clone(d.Managers), func(name string) bool { return name == "kubectl" })
		if !d.Status && len(others) > 0 {
			c.add(Note, "CustomResourceDefinition "+d.Name,
				"apply the new definition with --force-conflicts; never delete the old one: that deletes all objects",
				"its fields belong to %s", strings.Join(others, ", "))
		}
	}
}

// handlers checks the handlers that run, and those that Configurations name.
func (c *checker) handlers() {
	f := c.facts
	users := map[string][]string{}
	for i := range f.Configurations {
		parsed := parse(&f.Configurations[i])
		users[parsed.handler] = append(users[parsed.handler], parsed.Namespace+"/"+parsed.Name)
	}
	provided := map[string]bool{}
	unnamed := false
	for _, w := range f.workloads(RoleHandler) {
		place, name := w.Kind+" "+w.Namespace+"/"+w.Name, w.handler()
		unnamed = unnamed || name == ""
		provided[name] = true
		switch {
		case name == "":
			c.add(Note, place, "restart it after the move if kubectl akri nodes does not list it",
				"a handler of your own: it goes on working unchanged, but one without a Configuration registers again only when it starts")
			c.add(Changes, place,
				"if its devices have any, add --allow-device-files=udev=/dev,NAME=/dev to agent.args of the chart, with the name that it registers",
				"the device files and mounts of a handler of your own reach containers only if the agents permit them")
		case len(users[name]) == 0:
			c.add(Changes, place, "restart it after the move, as the plan does",
				"no Configuration uses the handler %s, so it does not notice that the agents are new", name)
		default:
			c.add(Note, place, "", "the handler %s goes on working unchanged; this Akri has its own, which can replace it later", name)
		}
	}
	for _, w := range f.workloads(RoleAgent) {
		for _, name := range w.embedded() {
			provided[name] = true
			if len(users[name]) > 0 {
				c.add(Changes, "DaemonSet "+w.Namespace+"/"+w.Name, "install with handlers."+builtIn[name]+".enabled=true, as the plan does",
					"the handler %s is part of Akri's agent and ends with it", name)
			}
		}
	}
	for _, w := range f.workloads(RoleNewHandler) {
		provided[newHandlers[w.Name]] = true
	}
	for _, name := range slices.Sorted(maps.Keys(users)) {
		if name != "" && !provided[name] && !unnamed {
			c.add(Note, "handler "+name, "see that it runs, and restart it after the move if kubectl akri nodes does not list it",
				"%s %s it, and nothing that was found provides it: it may connect by network, or run outside of Kubernetes",
				strings.Join(users[name], ", "), plural(len(users[name]), "uses", "use"))
		}
	}
}

// newHandlers maps the DaemonSets of the new handlers to the names that they register.
var newHandlers = map[string]string{
	"akri-udev-discovery": "udev", "akri-onvif-discovery": "onvif", "akri-opcua-discovery": "opcua",
	"akri-debug-echo-discovery": "debugEcho",
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// Installed reports whether the original Akri has a controller or agents.
func Installed(f *Facts) bool {
	return len(f.workloads(RoleController)) > 0 || len(f.workloads(RoleAgent)) > 0
}
