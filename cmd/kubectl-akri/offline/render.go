package offline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"akri.sh/akri/templating/cases"
	"akri.sh/akri/templating/source"
	"github.com/spf13/cobra"
)

type renderOptions struct {
	files     []string
	instances []string
	set       []string
}

func newRender(streams Streams) *cobra.Command {
	var o renderOptions
	command := &cobra.Command{
		Use:   "render -f FILE [-i FILE]... [--set KEY=VALUE]...",
		Short: "Print the objects that a Configuration would have made",
		Long: `Print the objects that a Configuration would have made, as YAML.

Without Instances, two made-up devices stand in for real ones. The objects are
those the controller applies, except for owner references and, when the
Configuration does not name a namespace, the namespace.`,
		Example: `  kubectl akri render -f configuration.yaml
  kubectl akri render -f configuration.yaml --set DEVICE_IP=10.0.0.5
  kubectl get akrii -o yaml | kubectl akri render -f configuration.yaml -i -`,
		Args: noArgs,
	}
	command.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "`file` or folder with Configurations; - reads standard input")
	command.Flags().StringArrayVarP(&o.instances, "instance", "i", nil, "`file` or folder with Instances; - reads standard input")
	command.Flags().StringArrayVar(&o.set, "set", nil, "property of every Instance, as `KEY=VALUE`")
	command.RunE = func(command *cobra.Command, _ []string) error { return o.run(command, streams) }
	return command
}

func (o *renderOptions) run(command *cobra.Command, streams Streams) error {
	properties, err := o.properties()
	if err == nil && len(o.files) == 0 {
		err = errNoFile
	}
	if err != nil {
		return usage(command, err)
	}
	all, err := readInput(command, streams, o.files, o.instances)
	if err != nil {
		return err
	}
	inputs, findings := load(all, properties)
	var out []byte
	for _, in := range inputs {
		rendered, problems := in.Render()
		out = append(out, rendered...)
		findings = append(findings, ofErrors(problems)...)
	}
	if count := show(streams.Err, findings, all); count > 0 {
		return wrong(count, ": nothing is printed")
	}
	for _, in := range inputs {
		if in.Sampled {
			fmt.Fprintf(streams.Err, "note: no Instances of %s were given: two made-up devices stand in for them, with made-up properties. Give real ones with -i, or properties with --set\n", in.Name())
		}
	}
	if len(inputs) > 0 && len(out) == 0 {
		fmt.Fprintln(streams.Err, "note: the Configuration has no broker resources, so there is nothing to print")
	}
	_, err = streams.Out.Write(out)
	return err
}

var errNoFile = errors.New("say which Configuration: -f FILE, or -f - for standard input")

// properties are those of --set.
func (o *renderOptions) properties() (map[string]string, error) {
	properties := make(map[string]string, len(o.set))
	for _, pair := range o.set {
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return nil, fmt.Errorf("--set %q: write KEY=VALUE, as in --set DEVICE_IP=10.0.0.5", pair)
		}
		properties[key] = value
	}
	return properties, nil
}

// readInput reads the files of Configurations and those of Instances.
func readInput(command *cobra.Command, streams Streams, lists ...[]string) (files, error) {
	names := slices.Concat(lists...)
	if err := onlyOneStdin(command, names...); err != nil {
		return nil, err
	}
	return readFiles(streams, names)
}

// load brings together each Configuration and its Instances.
func load(all files, properties map[string]string) ([]*cases.Input, []finding) {
	var findings []finding
	for _, f := range all {
		if f.broken != nil {
			findings = append(findings, ofBroken(f))
		}
	}
	configurations, instances := all.ofKind("Configuration"), all.ofKind("Instance")
	if len(findings) == 0 && len(configurations) == 0 {
		findings = append(findings, noConfiguration(all))
	}
	var names, known []string
	for _, c := range configurations {
		names = append(names, metadataName(c.Object()))
	}
	known = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
	for _, i := range instances {
		if name := configurationName(i.Object()); name != "" && len(known) > 0 && !slices.Contains(known, name) {
			findings = append(findings, stranger(i, name, known))
		}
	}
	var inputs []*cases.Input
	for c, configuration := range configurations {
		documents := []*source.Document{configuration.Document}
		for _, i := range instances {
			if name := configurationName(i.Object()); (name == "" || name == names[c]) && sameNamespace(i, configuration) {
				documents = append(documents, i.Document)
			}
		}
		in, problems := cases.Load(documents, cases.Options{Properties: properties})
		findings = append(findings, ofErrors(problems)...)
		if in != nil {
			inputs = append(inputs, in)
		}
	}
	return inputs, findings
}

// sameNamespace is true also when one of them does not say.
func sameNamespace(a, b document) bool {
	one, other := namespaceOf(a.Object()), namespaceOf(b.Object())
	return one == "" || other == "" || one == other
}

func noConfiguration(all files) finding {
	var names []string
	for _, f := range all {
		names = append(names, f.name)
	}
	return finding{
		cause: "there is no Configuration in " + strings.Join(names, ", "),
		hint:  "a Configuration begins with the lines apiVersion: akri.sh/v0 and kind: Configuration",
	}
}

// stranger is an Instance of a Configuration that is not there.
func stranger(instance document, name string, names []string) finding {
	return finding{
		at:    instance.Locate(pathOf("spec", "configurationName"), noDiagnostic),
		field: "spec.configurationName",
		cause: fmt.Sprintf("the Instance belongs to a Configuration %q, which is not among those given", name),
		hint:  "the Configurations given are " + strings.Join(names, ", ") + "; without configurationName an Instance is used for all of them",
	}
}
