package offline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/manifest"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/cases"
	"akri.sh/akri/templating/convert"
	"akri.sh/akri/templating/source"
)

type convertOptions struct {
	files []string
}

func newConvert(streams cli.Streams) *cobra.Command {
	var o convertOptions
	command := &cobra.Command{
		Use:   "convert -f FILE",
		Short: "Convert fields of the original Akri to those of today",
		Long: `Convert a Configuration's brokerSpec, instanceServiceSpec and
configurationServiceSpec to instanceBrokerResources and
configurationBrokerResources that create the same objects. These fields remain
supported; you do not have to convert them.

Configurations of older versions of Akri must be converted: protocol (before 0.4)
becomes discoveryHandler, properties becomes brokerProperties, brokerPodSpec in
spec is converted like one in brokerSpec, and units is removed.

Finalizers, status and other metadata that the cluster has set are removed. Comments
and everything else in the files are kept. Differences are reported on stderr.`,
		Example: `  kubectl akri convert -f old.yaml > new.yaml
  kubectl get akric akri-onvif -o yaml | kubectl akri convert -f -`,
		Args: noArgs,
	}
	command.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "`file` or directory with Configurations; - reads standard input")
	command.RunE = func(command *cobra.Command, _ []string) error { return o.run(command, streams) }
	return command
}

func (o *convertOptions) run(command *cobra.Command, streams cli.Streams) error {
	if len(o.files) == 0 {
		return cli.Usage(command, manifest.ErrNoFile)
	}
	all, err := manifest.Read(command, streams, o.files)
	if err != nil {
		return err
	}
	_, findings := load(all, cases.Options{}) // an error in the input would also be in the result
	var out bytes.Buffer
	var notes []string
	if len(findings) == 0 {
		for _, f := range all {
			fileNotes, err := convertFile(&out, f)
			if err != nil {
				findings = append(findings, findingOf(f, err))
			}
			notes = append(notes, fileNotes...)
		}
	}
	_, err = source.Parse("result", out.Bytes())
	if invalid, ok := errors.AsType[*source.SyntaxError](err); ok && len(findings) == 0 {
		// An alias (*name) may refer to an anchor in a removed field.
		findings = append(findings, finding.Finding{
			Mistake: finding.Mistake{
				Cause: "the result would not be valid YAML: " + invalid.Err.Error(),
				Hint:  "replace anchors (&name) and aliases (*name) with their content before converting",
			},
		})
	}
	if count := manifest.Show(streams.Err, findings, all); count > 0 {
		return errFound(count, "; nothing was printed")
	}
	for _, note := range notes {
		fmt.Fprintln(streams.Err, "note: "+note)
	}
	_, err = streams.Out.Write(out.Bytes())
	return err
}

// findingOf returns the finding for an error in converting a file.
func findingOf(f *manifest.File, err error) finding.Finding {
	if found, ok := errors.AsType[finding.Finding](err); ok {
		found.File = f.Name
		return found
	}
	return finding.Finding{Mistake: finding.Mistake{Cause: f.Name + ": " + err.Error()}}
}

// convertFile writes a file with its Configurations converted, and returns notes on
// what differs in the result.
func convertFile(out *bytes.Buffer, f *manifest.File) (notes []string, err error) {
	decoder := yamlv3.NewDecoder(bytes.NewReader(f.Data))
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
			documentNotes, err := convertDocument(root)
			if err != nil {
				return nil, err
			}
			notes = append(notes, documentNotes...)
			if out.Len() > 0 {
				out.WriteString("---\n")
			}
			if err := encode(out, root); err != nil {
				return nil, err
			}
		}
	}
}

// elements returns the items of a List as printed by kubectl get, or else the
// document itself.
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

// convertDocument converts a Configuration in place. Other kinds are unchanged.
func convertDocument(root *yamlv3.Node) (notes []string, err error) {
	var object struct {
		Metadata struct {
			Name string `yaml:"name"`
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
	if version := get(root, "apiVersion"); version != nil && !manifest.IsAkri(map[string]any{"apiVersion": version.Value}) {
		return nil, nil
	}
	dropServerFields(root)
	notes, modernized, err := modernize(get(root, "spec"))
	if err != nil {
		return nil, err
	}
	if err := root.Decode(&object); err != nil {
		return nil, err
	}
	lists, err := convert.BrokerResources(convert.Fields{
		BrokerPodSpec: object.Spec.BrokerSpec.BrokerPodSpec, BrokerJobSpec: object.Spec.BrokerSpec.BrokerJobSpec,
		InstanceServiceSpec: object.Spec.InstanceServiceSpec, ConfigurationServiceSpec: object.Spec.ConfigurationServiceSpec,
	})
	if err != nil {
		return nil, err
	}
	name := object.Metadata.Name
	for i, note := range notes {
		notes[i] = name + ": " + note
	}
	if len(lists.Instance)+len(lists.Configuration) == 0 {
		if !modernized {
			notes = append(notes, name+": nothing to convert")
		}
		return notes, nil
	}
	spec := get(root, "spec")
	spec.Style &^= yamlv3.FlowStyle // {} becomes a block map
	for _, field := range []string{"brokerSpec", "instanceServiceSpec", "configurationServiceSpec"} {
		if commented(spec, field) {
			notes = append(notes, name+": "+field+": its comments are lost: copy them manually")
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
		notes = append(notes, name+": "+r.From.String()+": "+differs[r.From.String()])
	}
	return notes, nil
}

// differs describes, for each old field, how the new form differs.
var differs = map[string]string{
	"brokerSpec.brokerPodSpec": "the capacity limits the number of Pods, and each Pod is pinned to its node even if the broker " +
		"has its own node affinity; Akri did neither",
	"brokerSpec.brokerJobSpec": "the digest in the Job's name no longer follows the Job: change it to run a changed Job again",
	"instanceServiceSpec": "the Service exists as long as its device does, not only while a broker runs, and also selects the Pods of " +
		"Jobs",
	"configurationServiceSpec": "the Service exists as long as there is a device, not only while a broker runs, and also selects the Pods " +
		"of Jobs",
}

// dropServerFields removes what kubectl get prints and must not be applied: fields that the
// API server sets, and finalizers. Those of the original Akri's agents are bare names of
// nodes, and nobody would take them off a Configuration that is created again.
func dropServerFields(root *yamlv3.Node) {
	remove(root, "status")
	metadata := get(root, "metadata")
	for _, field := range []string{
		"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generation", "managedFields",
		"resourceVersion", "selfLink", "uid",
	} {
		remove(metadata, field)
	}
	annotations := get(metadata, "annotations")
	remove(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	if annotations != nil && len(annotations.Content) == 0 {
		remove(metadata, "annotations")
	}
}

// add appends templates to a list, creating it if necessary.
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
	list.Style &^= yamlv3.FlowStyle // [] becomes a block list
	for _, r := range resources {
		var template yamlv3.Node
		if err := template.Encode(r.Template); err != nil {
			return err
		}
		list.Content = append(list.Content, &template)
	}
	return nil
}

// get returns the value of a key of a map, or nil.
func get(parent *yamlv3.Node, key string) *yamlv3.Node {
	if i := indexOf(parent, key); i >= 0 {
		return parent.Content[i+1]
	}
	return nil
}

// indexOf returns the index of a key of a map in its Content, which its value follows, or
// -1.
func indexOf(parent *yamlv3.Node, key string) int {
	if parent == nil || parent.Kind != yamlv3.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(parent.Content); i += 2 {
		if parent.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// commented reports whether there are comments at or below a key.
func commented(parent *yamlv3.Node, key string) bool {
	var hasComment func(*yamlv3.Node) bool
	hasComment = func(n *yamlv3.Node) bool {
		return n.HeadComment+n.LineComment+n.FootComment != "" || slices.ContainsFunc(n.Content, hasComment)
	}
	i := indexOf(parent, key)
	return i >= 0 && (hasComment(parent.Content[i]) || hasComment(parent.Content[i+1]))
}

func remove(parent *yamlv3.Node, key string) {
	if i := indexOf(parent, key); i >= 0 {
		parent.Content = slices.Delete(parent.Content, i, i+2)
	}
}
