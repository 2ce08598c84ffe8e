package offline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"akri.sh/akri/templating"
	"akri.sh/akri/templating/convert"
	"akri.sh/akri/templating/source"
	"github.com/spf13/cobra"
	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"
)

type convertOptions struct {
	files []string
}

func newConvert(streams Streams) *cobra.Command {
	var o convertOptions
	command := &cobra.Command{
		Use:   "convert -f FILE",
		Short: "Write brokerSpec and the Service fields as broker resources",
		Long: `Write a Configuration's brokerSpec, instanceServiceSpec and
configurationServiceSpec as instanceBrokerResources and
configurationBrokerResources that make the same objects.

Comments stay, and so does whatever else is in the files. What the new form says
differently is told on stderr. The old fields go on working: nobody has to
convert.`,
		Example: `  kubectl akri convert -f old.yaml > new.yaml
  kubectl get akric akri-onvif -o yaml | kubectl akri convert -f -`,
		Args: noArgs,
	}
	command.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "`file` or folder with Configurations; - reads standard input")
	command.RunE = func(command *cobra.Command, _ []string) error { return o.run(command, streams) }
	return command
}

func (o *convertOptions) run(command *cobra.Command, streams Streams) error {
	if len(o.files) == 0 {
		return usage(command, errNoFile)
	}
	all, err := readInput(command, streams, o.files)
	if err != nil {
		return err
	}
	_, findings := load(all, nil) // what is wrong before would be wrong after
	var out bytes.Buffer
	var notes []string
	if len(findings) == 0 {
		for _, f := range all {
			of, err := convertFile(&out, f)
			if err != nil {
				findings = append(findings, finding{cause: f.name + ": " + err.Error()})
			}
			notes = append(notes, of...)
		}
	}
	if _, err := source.Parse("result", out.Bytes()); err != nil && len(findings) == 0 {
		// An alias (*name) elsewhere may stand for a part that is gone now.
		findings = append(findings, finding{cause: "the result would be no YAML: " + strings.TrimPrefix(err.Error(), "result: "), hint: "write out anchors (&name) and aliases (*name) before converting"})
	}
	if count := show(streams.Err, findings, all); count > 0 {
		return wrong(count, ": nothing is printed")
	}
	for _, note := range notes {
		fmt.Fprintln(streams.Err, "note: "+note)
	}
	_, err = streams.Out.Write(out.Bytes())
	return err
}

// convertFile writes a file with its Configurations converted, and says what
// readers of the result should know.
func convertFile(out *bytes.Buffer, f *file) (notes []string, err error) {
	decoder := yamlv3.NewDecoder(bytes.NewReader(f.data))
	for {
		var document yamlv3.Node
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return notes, nil
		} else if err != nil {
			return nil, err
		}
		if len(document.Content) == 0 || document.Content[0].Tag == "!!null" {
			continue
		}
		for _, root := range elements(document.Content[0]) {
			of, err := convertDocument(root)
			if err != nil {
				return nil, err
			}
			notes = append(notes, of...)
			if out.Len() > 0 {
				out.WriteString("---\n")
			}
			if err := encode(out, root); err != nil {
				return nil, err
			}
		}
	}
}

// elements are those of a List as kubectl get prints it, else the document.
func elements(root *yamlv3.Node) []*yamlv3.Node {
	kind, items := get(root, "kind"), get(root, "items")
	if kind != nil && items != nil && strings.HasSuffix(kind.Value, "List") && items.Kind == yamlv3.SequenceNode {
		return items.Content
	}
	return []*yamlv3.Node{root}
}

func encode(out *bytes.Buffer, root *yamlv3.Node) error {
	encoder := yamlv3.NewEncoder(out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(root); err != nil {
		return err
	}
	return encoder.Close()
}

// convertDocument changes a Configuration in place; other kinds stay.
func convertDocument(root *yamlv3.Node) (notes []string, err error) {
	var object struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Metadata   struct {
			Name       string `yaml:"name"`
			Generation int64  `yaml:"generation"`
		} `yaml:"metadata"`
		Spec struct {
			BrokerSpec struct {
				BrokerPodSpec map[string]any `yaml:"brokerPodSpec"`
				BrokerJobSpec map[string]any `yaml:"brokerJobSpec"`
			} `yaml:"brokerSpec"`
			InstanceServiceSpec      map[string]any `yaml:"instanceServiceSpec"`
			ConfigurationServiceSpec map[string]any `yaml:"configurationServiceSpec"`
		} `yaml:"spec"`
	}
	if kind := get(root, "kind"); kind == nil || kind.Value != "Configuration" {
		return nil, nil
	}
	if err := root.Decode(&object); err != nil {
		return nil, err
	}
	if !ours(map[string]any{"apiVersion": object.APIVersion}) {
		return nil, nil
	}
	dropServerFields(root)
	lists, err := convert.BrokerResources(convert.Fields{
		BrokerPodSpec: object.Spec.BrokerSpec.BrokerPodSpec, BrokerJobSpec: object.Spec.BrokerSpec.BrokerJobSpec,
		InstanceServiceSpec: object.Spec.InstanceServiceSpec, ConfigurationServiceSpec: object.Spec.ConfigurationServiceSpec,
		Generation: max(object.Metadata.Generation, 1),
	})
	if err != nil {
		return nil, err
	}
	name := object.Metadata.Name
	if len(lists.Instance)+len(lists.Configuration) == 0 {
		return []string{name + ": there is nothing to convert"}, nil
	}
	spec := get(root, "spec")
	spec.Style &^= yamlv3.FlowStyle // {} becomes a map over several lines
	for _, field := range []string{"brokerSpec", "instanceServiceSpec", "configurationServiceSpec"} {
		if commented(spec, field) {
			notes = append(notes, name+": "+field+": the comments in and above it are not kept: copy them by hand")
		}
		remove(spec, field)
	}
	if err := add(spec, templating.InstanceLevel, lists.Instance); err != nil {
		return nil, err
	}
	if err := add(spec, templating.ConfigurationLevel, lists.Configuration); err != nil {
		return nil, err
	}
	for _, r := range slices.Concat(lists.Instance, lists.Configuration) {
		notes = append(notes, name+": "+r.From+": "+differs[r.From])
	}
	return notes, nil
}

// differs says what cannot be kept, and what the new form says in other words.
var differs = map[string]string{
	"brokerSpec.brokerPodSpec": "the capacity bounds the number of Pods, and each is pinned to its node also when the broker has node affinity of its own; Akri did neither",
	"brokerSpec.brokerJobSpec": "the generation of the Configuration in the Job's name is now a fixed number: change it by hand when a changed Job should run again",
	"instanceServiceSpec":      "the Service exists as long as its device, not only while a broker runs, and selects the pods of Jobs too",
	"configurationServiceSpec": "the Service exists as long as there is a device, not only while a broker runs, and selects the pods of Jobs too",
}

// dropServerFields removes what kubectl get shows and nobody should apply.
func dropServerFields(root *yamlv3.Node) {
	remove(root, "status")
	metadata := get(root, "metadata")
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid", "selfLink"} {
		remove(metadata, field)
	}
	annotations := get(metadata, "annotations")
	remove(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	if annotations != nil && len(annotations.Content) == 0 {
		remove(metadata, "annotations")
	}
}

// add appends templates to a list, which is made if there is none.
func add(spec *yamlv3.Node, level templating.Level, resources []convert.Resource) error {
	if len(resources) == 0 {
		return nil
	}
	list := get(spec, level.String())
	if list == nil || list.Kind != yamlv3.SequenceNode {
		remove(spec, level.String())
		list = &yamlv3.Node{Kind: yamlv3.SequenceNode}
		spec.Content = append(spec.Content, &yamlv3.Node{Kind: yamlv3.ScalarNode, Value: level.String()}, list)
	}
	list.Style &^= yamlv3.FlowStyle // [] becomes a list over several lines
	for _, r := range resources {
		var template yamlv3.Node
		if err := template.Encode(r.Template); err != nil {
			return err
		}
		list.Content = append(list.Content, &template)
	}
	return nil
}

// get is the value of a key of a map, or nil.
func get(of *yamlv3.Node, key string) *yamlv3.Node {
	if of == nil || of.Kind != yamlv3.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(of.Content); i += 2 {
		if of.Content[i].Value == key {
			return of.Content[i+1]
		}
	}
	return nil
}

// commented reports that there are comments at a key or below it.
func commented(of *yamlv3.Node, key string) bool {
	var any func(*yamlv3.Node) bool
	any = func(n *yamlv3.Node) bool {
		return n.HeadComment+n.LineComment+n.FootComment != "" || slices.ContainsFunc(n.Content, any)
	}
	for i := 0; i+1 < len(of.Content); i += 2 {
		if of.Content[i].Value == key {
			return any(of.Content[i]) || any(of.Content[i+1])
		}
	}
	return false
}

func remove(of *yamlv3.Node, key string) {
	if of == nil || of.Kind != yamlv3.MappingNode {
		return
	}
	for i := 0; i+1 < len(of.Content); i += 2 {
		if of.Content[i].Value == key {
			of.Content = slices.Delete(of.Content, i, i+2)
			return
		}
	}
}
