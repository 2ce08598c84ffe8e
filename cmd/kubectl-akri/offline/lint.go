package offline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	kinds "k8s.io/apimachinery/pkg/runtime/schema"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/manifest"
	"akri.sh/akri/cmd/kubectl-akri/schema"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/discovery/builtin"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/cases"
	"akri.sh/akri/templating/source"
)

type lintOptions struct {
	files     []string
	instances []string
	unchecked []string
}

func newLint(streams cli.Streams) *cobra.Command {
	var o lintOptions
	command := &cobra.Command{
		Use:   "lint -f FILE...",
		Short: "Report all errors in Configurations, with their place and a remedy",
		Long: `Report all errors in Configurations: unknown and missing fields, wrong types and
values, template errors, kinds that are not allowed. Then render the templates, for
the given Instances or for two sample devices; errors that occur with sample
devices are warnings. The fields and types of rendered Pods, Deployments and other
kinds built into Kubernetes are checked too, and so are the ports of Services and
discoveryDetails of the built-in discovery handlers.

The exit code is 0 if there are no errors, 1 if there are errors, and 2 if a file
cannot be read.`,
		Example: `  kubectl akri lint -f configuration.yaml
  kubectl akri lint manifests/*.yaml
  kubectl get akric -A -o yaml | kubectl akri lint -f -`,
		Args: cobra.ArbitraryArgs,
	}
	command.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "`file` or directory to check; - reads standard input")
	command.Flags().StringArrayVarP(&o.instances, "instance", "i", nil,
		"`file` or directory with Instances to render for; - reads standard input")
	command.Flags().StringSliceVar(&o.unchecked, "skip-details-of", nil,
		"`names` of built-in discovery handlers whose discoveryDetails are not checked, because the cluster has other handlers of these names")
	command.RunE = func(command *cobra.Command, args []string) error { return o.run(command, streams, args) }
	return command
}

func (o *lintOptions) run(command *cobra.Command, streams cli.Streams, args []string) error {
	names := append(o.files, args...)
	if len(names) == 0 {
		return cli.Usage(command, manifest.ErrNoFile)
	}
	validators, err := builtin.Without(o.unchecked)
	if err != nil {
		return cli.Usage(command, fmt.Errorf("--skip-details-of: %w", err))
	}
	all, err := manifest.Read(command, streams, names, o.instances)
	if err != nil {
		return err
	}
	findings := check(all, validators)
	count := manifest.Show(streams.Out, manifest.Sort(findings, all), all)
	if count > 0 {
		return errFound(count, "")
	}
	fmt.Fprintf(streams.Out, "%s, no errors", manifest.Count(len(all.OfKind("Configuration")), "Configuration"))
	if warnings := len(findings); warnings > 0 {
		fmt.Fprintf(streams.Out, ", %s", manifest.Count(warnings, "warning"))
	}
	fmt.Fprintln(streams.Out)
	return nil
}

// check returns all findings about files. The validators are those of discoveryDetails,
// by handler.
func check(all manifest.Files, validators map[string]func(string) error) []manifest.Finding {
	inputs, findings := inspect(all, nil)
	for _, in := range inputs {
		findings = append(findings, checkRendered(in)...)
	}
	for _, c := range all.OfKind("Configuration") {
		findings = append(findings, checkConfined(c)...)
		findings = append(findings, checkDetails(c, validators)...)
	}
	return findings
}

// inspect combines each Configuration with its Instances, and returns the findings about
// the documents as they are written: of their fields, and of their templates.
func inspect(all manifest.Files, properties map[string]string) ([]*cases.Input, []manifest.Finding) {
	findings := all.Broken()
	seen := len(findings) > 0
	for _, f := range all {
		for _, d := range f.Documents {
			found, isAkri := checkSchema(d)
			findings = append(findings, found...)
			seen = seen || isAkri
		}
	}
	if !seen {
		return nil, append(findings, all.NoConfiguration())
	}
	if len(all.OfKind("Configuration")) == 0 {
		return nil, findings
	}
	inputs, problems := load(withoutBroken(all), properties)
	return inputs, merge(findings, problems)
}

// withoutBroken leaves out files that could not be parsed and are reported already.
func withoutBroken(all manifest.Files) manifest.Files {
	return slices.DeleteFunc(slices.Clone(all), func(f *manifest.File) bool { return f.Err != nil })
}

// checkSchema checks a document against the definition of its kind.
func checkSchema(d *source.Document) (findings []manifest.Finding, isAkri bool) {
	problems, isAkri := schema.Check(d.Object())
	for _, p := range problems {
		f := manifest.Finding{
			At: d.Locate(nil, diagnosticOf(p)), Place: p.Place.String(), Template: templateOf(p.Place), Cause: p.Cause, Hint: p.Hint,
		}
		if spec, ok := d.Object()["spec"].(map[string]any); ok && p.OfKey && f.Place == "spec.protocol" {
			f.Hint += strings.TrimSuffix("\n"+newForm(spec["protocol"]), "\n")
		}
		findings = append(findings, f)
	}
	return findings, isAkri
}

// diagnosticOf returns the diagnostic that leads to the place of a problem.
func diagnosticOf(p schema.Mistake) templating.Diagnostic {
	d := templating.Diagnostic{Field: p.Place}
	if p.OfKey {
		d.Text = p.Place[len(p.Place)-1].Key
	}
	return d
}

// merge adds the findings of loading to those of the schema. If both have one for
// the same place, the more specific check wins: the one of templates inside a
// template, the one of the schema elsewhere.
func merge(bySchema, loading []manifest.Finding) []manifest.Finding {
	merged := slices.DeleteFunc(slices.Clone(bySchema), func(s manifest.Finding) bool {
		return s.Template != "" && slices.ContainsFunc(loading, func(l manifest.Finding) bool {
			return l.At.File == s.At.File && l.Template == s.Template
		})
	})
	for _, l := range loading {
		if !slices.ContainsFunc(bySchema, func(s manifest.Finding) bool {
			samePlace := s.At == l.At || l.Place != "" && within(s.Place, l.Place)
			return s.At.File == l.At.File && samePlace && l.Template == ""
		}) {
			merged = append(merged, l)
		}
	}
	return merged
}

// within reports whether a place is the outer place or below it.
func within(place, outer string) bool {
	return place == outer || strings.HasPrefix(place, outer+".") || strings.HasPrefix(place, outer+"[")
}

// templateOf returns the template that a field of a Configuration is in, such as
// instanceBrokerResources[2], or "".
func templateOf(path templating.Path) string {
	if len(path) < 3 || path[0] != templating.Key("spec") || !path[2].IsIndex {
		return ""
	}
	for _, level := range []templating.Level{templating.InstanceLevel, templating.ConfigurationLevel} {
		if path[1] == templating.Key(level.String()) {
			return templating.Origin{Level: level, Index: path[2].Index}.String()
		}
	}
	return ""
}

// checkRendered renders the templates. Sample devices may lack properties that real
// ones have, so an error that occurs with them is only a warning.
func checkRendered(in *cases.Input) []manifest.Finding {
	objects, problems := in.Objects()
	var findings []manifest.Finding
	for _, o := range objects {
		for _, f := range checkBuiltIn(o) {
			if !slices.Contains(findings, f) {
				findings = append(findings, f)
			}
		}
	}
	for _, f := range manifest.FromErrors(problems) {
		if f.Warning = in.Sampled; in.Sampled && f.For != "" {
			f.For = ""
			f.Cause += " (with a sample device)"
		}
		if !slices.Contains(findings, f) {
			findings = append(findings, f)
		}
	}
	return findings
}

// checkBuiltIn finds fields that a kind built into Kubernetes does not have, and
// values of wrong types: the API server would reject the object.
func checkBuiltIn(o cases.Rendered) []manifest.Finding {
	var findings []manifest.Finding
	for _, p := range schema.CheckRendered(o.Content) {
		findings = append(findings, manifest.Finding{
			At: o.Locate(diagnosticOf(p)), Place: placeIn(o, p.Place), Cause: p.Cause, Hint: p.Hint,
		})
	}
	return findings
}

// placeIn returns the path of a field of a rendered object as its author knows it: the
// same for each element of a for-each, and without spec in an old field.
func placeIn(o cases.Rendered, path templating.Path) string {
	if o.From == o.Origin.String() {
		return path.Below(o.Origin.Template().String())
	}
	if len(path) > 0 && path[0] == templating.Key("spec") {
		path = path[1:]
	}
	return path.Below(o.From)
}

// checkConfined finds kinds and namespaces that the controller does not allow.
func checkConfined(c *source.Document) []manifest.Finding {
	var findings []manifest.Finding
	namespace := metadataOf(c.Object(), "namespace")
	spec, _ := c.Object()["spec"].(map[string]any)
	for _, level := range []templating.Level{templating.InstanceLevel, templating.ConfigurationLevel} {
		templates, _ := spec[level.String()].([]any)
		for i, element := range templates {
			template, _ := element.(map[string]any)
			path := append(pathOf("spec", level.String()), templating.Index(i))
			if err := (confine.Policy{}).Kind(gvk(template)); err != nil {
				findings = append(findings, refused(c, append(path, templating.Key("kind")), err))
			} else if err := confineObject(template, namespace); err != nil {
				at := append(path, templating.Key("kind"))
				if metadataOf(template, "namespace") != "" {
					at = append(path, pathOf("metadata", "namespace")...)
				}
				findings = append(findings, refused(c, at, err))
			}
		}
	}
	return findings
}

func refused(c *source.Document, path templating.Path, err error) manifest.Finding {
	f := manifest.Finding{At: c.Locate(path, templating.Diagnostic{}), Place: path[1:].String(), Cause: err.Error()}
	if r, ok := errors.AsType[*problem.Error](err); ok {
		f.Cause, f.Hint = r.Cause, r.Hint
	}
	return f
}

func gvk(template map[string]any) kinds.GroupVersionKind {
	apiVersion, _ := template["apiVersion"].(string)
	kind, _ := template["kind"].(string)
	return kinds.FromAPIVersionAndKind(apiVersion, kind)
}

// confineObject checks what is known without a cluster: whether one of the common
// kinds is cluster-scoped, and whether the template's namespace differs from the
// Configuration's, if that is set.
func confineObject(template map[string]any, namespace string) error {
	kind := gvk(template)
	if namespace == "" {
		namespace = metadataOf(template, "namespace")
	}
	namespaced := !slices.Contains(clusterScoped, kind.GroupKind())
	return (confine.Policy{}).Object(confine.ObjectOf(kind, namespaced, template, templating.OnConflictOf(template)), namespace)
}

// clusterScoped lists the cluster-scoped kinds that templates are most likely to use.
var clusterScoped = []kinds.GroupKind{
	{Kind: "Namespace"}, {Kind: "Node"}, {Kind: "PersistentVolume"},
	{Group: "storage.k8s.io", Kind: "StorageClass"}, {Group: "storage.k8s.io", Kind: "CSIDriver"},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}, {Group: "node.k8s.io", Kind: "RuntimeClass"},
	{Group: "networking.k8s.io", Kind: "IngressClass"}, {Group: "resource.k8s.io", Kind: "DeviceClass"},
}
