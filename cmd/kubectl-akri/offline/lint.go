package offline

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	kinds "k8s.io/apimachinery/pkg/runtime/schema"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/manifest"
	"akri.sh/akri/cmd/kubectl-akri/schema"
	"akri.sh/akri/controller/advice"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/discovery/builtin"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/cases"
	"akri.sh/akri/templating/source"
)

type lintOptions struct {
	files     []string
	instances []string
	unchecked []string
	output    cli.Output
}

func newLint(streams cli.Streams) *cobra.Command {
	var o lintOptions
	command := &cobra.Command{
		Use:   "lint -f FILE...",
		Short: "Report all errors in Configurations, with their place and a remedy",
		Long: `Report all errors in Configurations: unknown and missing fields, wrong types and
values, template errors, kinds that are not allowed. Then render the templates, for
the given Instances or for two sample devices; errors that occur with sample
devices are warnings. Also check the fields and types of rendered Pods, Deployments
and other kinds built into Kubernetes, the ports of Services, and discoveryDetails of
the built-in discovery handlers.

With -o json or yaml, the findings are printed as a list, each with its level (error
or warning), file, line, column, path, message and remedy, if they are known.

The exit code is 0 if there are no errors, 1 if there are errors, and 2 if a file
cannot be read.`,
		Example: `  kubectl akri lint -f configuration.yaml
  kubectl akri lint manifests/*.yaml
  kubectl akri lint manifests/*.yaml -o json
  kubectl get akric -A -o yaml | kubectl akri lint -f -`,
		Args: cobra.ArbitraryArgs,
	}
	command.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "`file` or directory to check; - reads standard input")
	command.Flags().StringArrayVarP(&o.instances, "instance", "i", nil,
		"`file` or directory with Instances to render for; - reads standard input")
	command.Flags().StringSliceVar(&o.unchecked, "skip-details-of", nil,
		"`names` of built-in discovery handlers whose discoveryDetails are not checked, because the cluster has other handlers of these names")
	o.output.AddFlag(command)
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
	inputs, written := inspect(all, cases.Options{Partly: true})
	findings := manifest.Sort(append(written, check(all, inputs, validators)...), all)
	errs := manifest.Errors(findings)
	err = o.output.Print(streams.Out, lintResult{Findings: append([]finding.Finding{}, findings...)}, func(out io.Writer) error {
		manifest.Show(out, findings, all)
		if errs > 0 {
			return nil
		}
		summary := manifest.Count(len(all.OfKind("Configuration")), "Configuration") + ", no errors"
		if warnings := len(findings); warnings > 0 {
			summary += ", " + manifest.Count(warnings, "warning")
		}
		_, err := fmt.Fprintln(out, summary)
		return err
	})
	if err == nil && errs > 0 {
		return errFound(errs, "")
	}
	return err
}

// lintResult is the output of lint as JSON or YAML.
type lintResult struct {
	Findings []finding.Finding `json:"findings"`
}

// check returns the findings about what the documents lead to, in addition to those of
// inspect. The validators are those of discoveryDetails, by handler.
func check(all manifest.Files, inputs []*cases.Input, validators map[string]func(string) error) (findings []finding.Finding) {
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
func inspect(all manifest.Files, o cases.Options) ([]*cases.Input, []finding.Finding) {
	var findings []finding.Finding
	seen := false
	for _, f := range all {
		for _, d := range f.Documents {
			found, isAkri := schema.Check(d.Object(), d)
			findings = append(findings, found...)
			seen = seen || isAkri
		}
	}
	if seen && len(all.OfKind("Configuration")) == 0 {
		return nil, append(all.Broken(), findings...)
	}
	inputs, problems := load(all, o)
	return inputs, merge(findings, problems)
}

// merge adds the findings of loading to those of the schema. If both have one for
// the same place, the more specific check wins: the one of templates inside a
// template, the one of the schema elsewhere.
func merge(bySchema, loading []finding.Finding) []finding.Finding {
	merged := slices.DeleteFunc(slices.Clone(bySchema), func(s finding.Finding) bool {
		template := inTemplate.FindString(strings.TrimPrefix(s.Path, "spec."))
		return template != "" && slices.ContainsFunc(loading, func(l finding.Finding) bool {
			return l.File == s.File && inTemplate.FindString(l.Path) == template
		})
	})
	for _, l := range loading {
		if !slices.ContainsFunc(bySchema, func(s finding.Finding) bool {
			samePlace := s.Position == l.Position || l.Path != "" && within(s.Path, l.Path)
			return s.File == l.File && samePlace && !inTemplate.MatchString(l.Path)
		}) {
			merged = append(merged, l)
		}
	}
	return merged
}

// inTemplate matches the path of a field in a template as its author knows it, which
// begins with the template, as in instanceBrokerResources[2].
var inTemplate = regexp.MustCompile(`^(instance|configuration)BrokerResources\[\d+\]`)

// within reports whether a place is the outer place or below it.
func within(place, outer string) bool {
	return place == outer || strings.HasPrefix(place, outer+".") || strings.HasPrefix(place, outer+"[")
}

// checkRendered renders the templates. Sample devices may lack properties that real ones have,
// so an error that depends on them is only a warning.
func checkRendered(in *cases.Input) (findings []finding.Finding) {
	objects, mistakes := in.Objects()
	var refused []finding.Finding
	for _, o := range objects {
		refused = append(refused, schema.CheckBuiltIn(o.Content, o)...)
	}
	lacking := in.Mistakes // the objects lack their values
	for i, f := range slices.Concat(mistakes, refused) {
		if i == len(mistakes) { // and those that failed, but not the names of several objects
			failed := slices.DeleteFunc(slices.Clone(mistakes), func(k finding.Finding) bool { return k.For == "" })
			lacking = slices.Concat(lacking, failed)
		}
		near := func(k finding.Finding) bool { return within(f.Path, k.Path) || within(k.Path, f.Path) }
		if in.Sampled {
			if f.For = ""; f.Level == finding.Warning {
				f.Cause += " (with a sample device)"
			}
		}
		same := func(k finding.Finding) bool {
			return k == f || in.Sampled && k.Position == f.Position && k.Path == f.Path && k.Hint == f.Hint
		}
		if !slices.ContainsFunc(lacking, near) && !slices.ContainsFunc(findings, same) {
			findings = append(findings, f)
		}
	}
	return append(findings, advise(in, objects, slices.Concat(in.Mistakes, mistakes))...)
}

// advise warns of objects that will not work as expected, alone or together, with devices that
// one node sees or several. One warning for a field is enough, with whatever devices it is
// rendered. Templates with mistakes wait: their objects may lack what the advice would ask for.
func advise(in *cases.Input, objects []cases.Rendered, mistakes []finding.Finding) (findings []finding.Finding) {
	own := len(objects)
	if in.Sampled {
		shared, _ := in.Shared().Objects()
		objects = slices.Concat(objects, shared)
	}
	var members []advice.Member
	var warnings templating.Diagnostics
	templates, warned := map[templating.Origin]cases.Rendered{}, map[string]bool{}
	for i, o := range objects {
		if slices.ContainsFunc(mistakes, func(f finding.Finding) bool { return within(f.Path, o.Place()) }) {
			continue
		}
		member, found := advice.Of(o.Template, o.Object, o.Values)
		templates[o.Origin.Template()], warnings = o, append(warnings, found...)
		if i < own || o.Origin.Level == templating.InstanceLevel { // those of the Configuration exist once
			members = append(members, member)
		}
	}
	if len(mistakes) == 0 { // what is missing may select or be selected
		warnings = append(warnings, advice.Together(members)...)
	}
	for _, warning := range warnings {
		found := templates[warning.Origin].Finding(warning)
		found.Level = finding.Warning
		if !warned[found.Path] {
			warned[found.Path] = true
			findings = append(findings, found)
		}
	}
	return findings
}

// checkConfined finds kinds and namespaces that the controller does not allow.
func checkConfined(c *source.Document) []finding.Finding {
	var findings []finding.Finding
	namespace := textAt(c.Object(), "metadata", "namespace")
	spec, _ := c.Object()["spec"].(map[string]any)
	for _, level := range []templating.Level{templating.InstanceLevel, templating.ConfigurationLevel} {
		templates, _ := spec[level.String()].([]any)
		for i, element := range templates {
			template, _ := element.(map[string]any)
			path := append(templating.Keys("spec", level.String()), templating.Index(i))
			if err := (confine.Policy{}).Kind(gvk(template)); err != nil {
				findings = append(findings, refused(c, append(path, templating.Key("kind")), err))
			} else if err := confineObject(template, namespace); err != nil {
				at := append(path, templating.Key("kind"))
				if textAt(template, "metadata", "namespace") != "" {
					at = append(path, templating.Keys("metadata", "namespace")...)
				}
				findings = append(findings, refused(c, at, err))
			}
		}
	}
	return findings
}

func refused(c *source.Document, path templating.Path, err error) finding.Finding {
	f := finding.Finding{Position: c.Locate(path, templating.Diagnostic{})}
	f.Mistake = problem.At(path[1:].String(), err).Mistake
	return f
}

func gvk(template map[string]any) kinds.GroupVersionKind {
	return kinds.FromAPIVersionAndKind(textAt(template, "apiVersion"), textAt(template, "kind"))
}

// confineObject checks what is known without a cluster: whether one of the common
// kinds is cluster-scoped, and whether the template's namespace differs from the
// Configuration's, if that is set.
func confineObject(template map[string]any, namespace string) error {
	kind := gvk(template)
	if namespace == "" {
		namespace = textAt(template, "metadata", "namespace")
	}
	namespaced := !slices.Contains(clusterScoped, kind.GroupKind())
	return (confine.Policy{}).Object(kind, namespaced, template, templating.OnConflictOf(template), namespace)
}

// clusterScoped lists the cluster-scoped kinds that templates are most likely to use.
var clusterScoped = []kinds.GroupKind{
	{Kind: "Namespace"}, {Kind: "Node"}, {Kind: "PersistentVolume"},
	{Group: "storage.k8s.io", Kind: "StorageClass"}, {Group: "storage.k8s.io", Kind: "CSIDriver"},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}, {Group: "node.k8s.io", Kind: "RuntimeClass"},
	{Group: "networking.k8s.io", Kind: "IngressClass"}, {Group: "resource.k8s.io", Kind: "DeviceClass"},
}
