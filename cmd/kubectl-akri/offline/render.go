package offline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/manifest"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/cases"
	"akri.sh/akri/templating/source"
)

type renderOptions struct {
	files     []string
	instances []string
	set       []string
}

func newRender(streams cli.Streams) *cobra.Command {
	var o renderOptions
	command := &cobra.Command{
		Use:   "render -f FILE [-i FILE]... [--set KEY=VALUE]...",
		Short: "Print the objects a Configuration would create",
		Long: `Print the objects a Configuration would create, as YAML.

Without Instances, the templates are rendered for two sample devices. The objects
are the ones the controller applies, without owner references and, if the
Configuration does not set a namespace, without a namespace.

If there is an error, such as a field that does not exist, nothing is printed.`,
		Example: `  kubectl akri render -f configuration.yaml
  kubectl akri render -f configuration.yaml --set DEVICE_IP=10.0.0.5
  kubectl get akrii -o yaml | kubectl akri render -f configuration.yaml -i -`,
		Args: noArgs,
	}
	command.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "`file` or directory with Configurations; - reads standard input")
	command.Flags().StringArrayVarP(&o.instances, "instance", "i", nil, "`file` or directory with Instances; - reads standard input")
	command.Flags().StringArrayVar(&o.set, "set", nil, "property of every Instance, as `KEY=VALUE`")
	command.RunE = func(command *cobra.Command, _ []string) error { return o.run(command, streams) }
	return command
}

func (o *renderOptions) run(command *cobra.Command, streams cli.Streams) error {
	properties, err := o.properties()
	if err == nil && len(o.files) == 0 {
		err = manifest.ErrNoFile
	}
	if err != nil {
		return cli.Usage(command, err)
	}
	all, err := manifest.Read(command, streams, o.files, o.instances)
	if err != nil {
		return err
	}
	inputs, findings := inspect(all, cases.Options{Properties: properties})
	var out []byte
	for _, in := range inputs {
		rendered, mistakes := in.Render()
		out = append(out, rendered...)
		found := checkRendered(in)
		for i := range found {
			if len(mistakes) > 0 {
				found[i].Level = finding.Error // an object is missing in the output
			}
		}
		findings = append(findings, found...)
	}
	if count := manifest.Show(streams.Err, manifest.Sort(findings, all), all); count > 0 {
		return errFound(count, "; nothing was printed")
	}
	for _, in := range inputs {
		if in.Sampled {
			fmt.Fprintf(streams.Err, "note: no Instances of %s were given; rendered for two sample devices. "+
				"Pass real Instances with -i, or properties with --set\n", in.Name())
		}
	}
	if len(inputs) > 0 && len(out) == 0 {
		fmt.Fprintln(streams.Err, "note: the Configuration has no broker resources; there is nothing to print")
	}
	_, err = cli.Exact(streams.Out).Write(out)
	return err
}

// properties returns the properties set by --set.
func (o *renderOptions) properties() (map[string]string, error) {
	properties := make(map[string]string, len(o.set))
	for _, pair := range o.set {
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return nil, fmt.Errorf("--set %q: use KEY=VALUE, as in --set DEVICE_IP=10.0.0.5", pair)
		}
		properties[key] = value
	}
	return properties, nil
}

// load combines each Configuration with its Instances.
func load(all manifest.Files, o cases.Options) ([]*cases.Input, []finding.Finding) {
	findings := all.Broken()
	configurations, instances := all.OfKind("Configuration"), all.OfKind("Instance")
	if len(findings) == 0 && len(configurations) == 0 {
		findings = append(findings, all.NoConfiguration())
	}
	var known []string
	for _, c := range configurations {
		if name := textAt(c.Object(), "metadata", "name"); name != "" {
			known = append(known, name)
		}
	}
	for _, i := range instances {
		if name := textAt(i.Object(), "spec", "configurationName"); name != "" && len(known) > 0 && !slices.Contains(known, name) {
			findings = append(findings, unknownConfiguration(i, name, known))
		}
	}
	var inputs []*cases.Input
	for _, configuration := range configurations {
		own, documents := textAt(configuration.Object(), "metadata", "name"), []*source.Document{configuration}
		for _, i := range instances {
			if name := textAt(i.Object(), "spec", "configurationName"); (name == "" || name == own) && sameNamespace(i, configuration) {
				documents = append(documents, i)
			}
		}
		in, mistakes := cases.Load(documents, o)
		findings = append(findings, mistakes...)
		if in != nil {
			inputs = append(inputs, in)
		}
	}
	return inputs, findings
}

// sameNamespace reports whether two documents are in the same namespace. A document
// without a namespace matches any.
func sameNamespace(a, b *source.Document) bool {
	one, other := textAt(a.Object(), "metadata", "namespace"), textAt(b.Object(), "metadata", "namespace")
	return one == "" || other == "" || one == other
}

// unknownConfiguration returns the finding for an Instance whose Configuration is
// not among those given.
func unknownConfiguration(instance *source.Document, name string, known []string) finding.Finding {
	return finding.Finding{
		Position: instance.Locate(templating.Keys("spec", "configurationName"), templating.Diagnostic{}),
		Mistake: finding.Mistake{
			Path:  "spec.configurationName",
			Cause: fmt.Sprintf("the Instance belongs to Configuration %q, which was not given", name),
			Hint:  "given: " + strings.Join(known, ", ") + "; an Instance without configurationName is used for every Configuration",
		},
	}
}

// textAt returns the string at a path of an object, or "".
func textAt(object map[string]any, path ...string) string {
	text, _, _ := unstructured.NestedString(object, path...)
	return text
}
