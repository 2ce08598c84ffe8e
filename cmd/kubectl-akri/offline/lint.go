package offline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"akri.sh/akri/cmd/kubectl-akri/schema"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/cases"
	"akri.sh/akri/templating/source"
	"github.com/spf13/cobra"
	kinds "k8s.io/apimachinery/pkg/runtime/schema"
)

type lintOptions struct {
	files     []string
	instances []string
}

func newLint(streams Streams) *cobra.Command {
	var o lintOptions
	command := &cobra.Command{
		Use:   "lint -f FILE...",
		Short: "Tell everything that is wrong with Configurations, with places and remedies",
		Long: `Tell everything that is wrong with Configurations: unknown and missing fields,
wrong types and values, mistakes in templates, kinds that are refused. Then the
templates are rendered, for Instances if there are any, else for two made-up
devices; what goes wrong with made-up devices is a warning. Fields and types of
rendered Pods, Deployments and other kinds built into Kubernetes are checked too.

The exit code is 0 when there are no mistakes, 1 when there are some, and 2 when
a file cannot be read.`,
		Example: `  kubectl akri lint -f configuration.yaml
  kubectl akri lint manifests/*.yaml
  kubectl get akric -A -o yaml | kubectl akri lint -f -`,
		Args: cobra.ArbitraryArgs,
	}
	command.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "`file` or folder to check; - reads standard input")
	command.Flags().StringArrayVarP(&o.instances, "instance", "i", nil, "`file` or folder with Instances to render for; - reads standard input")
	command.RunE = func(command *cobra.Command, args []string) error { return o.run(command, streams, args) }
	return command
}

func (o *lintOptions) run(command *cobra.Command, streams Streams, args []string) error {
	names := append(o.files, args...)
	if len(names) == 0 {
		return usage(command, errNoFile)
	}
	all, err := readInput(command, streams, names, o.instances)
	if err != nil {
		return err
	}
	findings := check(all)
	count := show(streams.Out, ordered(findings, all), all)
	if count > 0 {
		return wrong(count, "")
	}
	fmt.Fprintf(streams.Out, "%s, no mistakes", plural(len(all.ofKind("Configuration")), "Configuration"))
	if warnings := len(findings); warnings > 0 {
		fmt.Fprintf(streams.Out, ", %s", plural(warnings, "warning"))
	}
	fmt.Fprintln(streams.Out)
	return nil
}

// check is everything there is to tell about files.
func check(all files) []finding {
	var findings []finding
	seen := false
	for _, f := range all {
		if f.broken != nil {
			findings = append(findings, ofBroken(f))
			seen = true
		}
		for _, d := range f.documents {
			of, isOurs := checkSchema(d)
			findings = append(findings, of...)
			seen = seen || isOurs
		}
	}
	if !seen {
		return append(findings, noConfiguration(all))
	}
	if len(all.ofKind("Configuration")) == 0 {
		return findings
	}
	inputs, problems := load(onlyReadable(all), nil)
	findings = merge(findings, problems)
	for _, in := range inputs {
		findings = append(findings, checkRendered(in)...)
	}
	for _, c := range all.ofKind("Configuration") {
		findings = append(findings, checkConfined(c)...)
	}
	return findings
}

// onlyReadable leaves out files whose trouble is told already.
func onlyReadable(all files) files {
	return slices.DeleteFunc(slices.Clone(all), func(f *file) bool { return f.broken != nil })
}

// checkSchema compares a document with the definition of its kind.
func checkSchema(d *source.Document) (findings []finding, ours bool) {
	problems, ours := schema.Check(d.Object())
	for _, p := range problems {
		diagnostic := templating.Diagnostic{Field: p.Path}
		if p.OfKey {
			diagnostic.Text = p.Path[len(p.Path)-1].Key
		}
		findings = append(findings, finding{at: d.Locate(nil, diagnostic), field: p.Path.String(), cause: p.Cause, hint: p.Hint})
	}
	return findings, ours
}

// merge adds what loading found to what the schema says. Where both speak about one
// place, the check that knows more is heard: inside a template that of templates,
// elsewhere the schema.
func merge(schema, loading []finding) []finding {
	merged := slices.DeleteFunc(slices.Clone(schema), func(s finding) bool {
		template := templateOf(s.field)
		return template != "" && slices.ContainsFunc(loading, func(l finding) bool {
			return l.at.File == s.at.File && templateOf("spec."+l.field) == template
		})
	})
	for _, l := range loading {
		if !slices.ContainsFunc(schema, func(s finding) bool {
			return s.at.File == l.at.File && (s.at == l.at || l.field != "" && strings.HasPrefix(s.field, l.field)) && templateOf("spec."+l.field) == ""
		}) {
			merged = append(merged, l)
		}
	}
	return merged
}

// templateOf is the template that a field of a Configuration is in, as in
// instanceBrokerResources[2], or "".
func templateOf(field string) string {
	field, found := strings.CutPrefix(field, "spec.")
	if !found {
		return ""
	}
	for _, level := range []templating.Level{templating.InstanceLevel, templating.ConfigurationLevel} {
		if rest, found := strings.CutPrefix(field, level.String()+"["); found {
			if index, _, found := strings.Cut(rest, "]"); found {
				return level.String() + "[" + index + "]"
			}
		}
	}
	return ""
}

// checkRendered renders. Made-up devices may lack what real ones have, so what goes
// wrong with them is no more than a warning.
func checkRendered(in *cases.Input) []finding {
	objects, problems := in.Objects()
	var findings []finding
	for _, o := range objects {
		for _, f := range checkBuiltIn(o) {
			if !slices.Contains(findings, f) {
				findings = append(findings, f)
			}
		}
	}
	for _, f := range ofErrors(problems) {
		f.warning = in.Sampled
		if _, rest, found := strings.Cut(f.field, ", "); found && in.Sampled {
			f.field = rest
			f.cause += " (with a made-up device)"
		}
		if !slices.Contains(findings, f) {
			findings = append(findings, f)
		}
	}
	return findings
}

// checkBuiltIn finds fields that a kind built into Kubernetes does not have, and
// values of wrong types: the API server would refuse the object.
func checkBuiltIn(o cases.Rendered) []finding {
	var findings []finding
	for _, p := range schema.CheckBuiltIn(o.Content) {
		diagnostic := templating.Diagnostic{Field: p.Path}
		if p.OfKey {
			diagnostic.Text = p.Path[len(p.Path)-1].Key
		}
		findings = append(findings, finding{at: o.Locate(diagnostic), field: fieldIn(o, p.Path), cause: p.Cause, hint: p.Hint})
	}
	return findings
}

// fieldIn names a field of a rendered object as the author knows it: the same for
// each element of a for-each, and in an old field without the spec around it.
func fieldIn(o cases.Rendered, path templating.Path) string {
	if strings.HasPrefix(o.From, o.Origin.Level.String()) {
		list := templating.Origin{Level: o.Origin.Level, Index: o.Origin.Index}.String()
		return fieldOf(templating.Diagnostic{List: list, Field: path})
	}
	if len(path) > 0 && path[0] == templating.Key("spec") {
		path = path[1:]
	}
	return fieldOf(templating.Diagnostic{List: o.From, Field: path})
}

// checkConfined finds kinds and namespaces that the controller refuses.
func checkConfined(c document) []finding {
	var findings []finding
	metadata, _ := c.Object()["metadata"].(map[string]any)
	home, _ := metadata["namespace"].(string)
	spec, _ := c.Object()["spec"].(map[string]any)
	for _, level := range []templating.Level{templating.InstanceLevel, templating.ConfigurationLevel} {
		templates, _ := spec[level.String()].([]any)
		for i, element := range templates {
			template, _ := element.(map[string]any)
			path := append(pathOf("spec", level.String()), templating.Index(i))
			if err := confineKind(template); err != nil {
				findings = append(findings, refused(c, append(path, templating.Key("kind")), err))
			} else if err := confineObject(template, home); err != nil {
				at := append(path, templating.Key("kind"))
				if namespaceOf(template) != "" {
					at = append(path, pathOf("metadata", "namespace")...)
				}
				findings = append(findings, refused(c, at, err))
			}
		}
	}
	return findings
}

func refused(c document, path templating.Path, err error) finding {
	f := finding{at: c.Locate(path, noDiagnostic), field: path[1:].String(), cause: err.Error()}
	if r, ok := errors.AsType[*problem.Error](err); ok {
		f.cause, f.hint = r.Cause, r.Hint
	}
	return f
}

func gvk(template map[string]any) kinds.GroupVersionKind {
	apiVersion, _ := template["apiVersion"].(string)
	kind, _ := template["kind"].(string)
	return kinds.FromAPIVersionAndKind(apiVersion, kind)
}

func confineKind(template map[string]any) error { return (confine.Policy{}).Kind(gvk(template)) }

// confineObject asks about what is known without a cluster: which kinds are
// cluster-scoped is known for the common ones, and whether the namespace is another
// one when the Configuration names its own.
func confineObject(template map[string]any, home string) error {
	kind := gvk(template)
	if home == "" {
		home = namespaceOf(template)
	}
	return (confine.Policy{}).Object(confine.ObjectOf(kind, !slices.Contains(clusterScoped, kind.GroupKind()), template), home)
}

func namespaceOf(template map[string]any) string {
	metadata, _ := template["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	return namespace
}

// clusterScoped is the kinds outside of namespaces that people try first.
var clusterScoped = []kinds.GroupKind{
	{Kind: "Namespace"}, {Kind: "Node"}, {Kind: "PersistentVolume"},
	{Group: "storage.k8s.io", Kind: "StorageClass"}, {Group: "storage.k8s.io", Kind: "CSIDriver"},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}, {Group: "node.k8s.io", Kind: "RuntimeClass"},
	{Group: "networking.k8s.io", Kind: "IngressClass"}, {Group: "resource.k8s.io", Kind: "DeviceClass"},
}
