package offline

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/manifest"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
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
becomes discoveryHandler, properties becomes brokerProperties, brokerPodSpec or
brokerJobSpec in spec is converted like one in brokerSpec, and units is removed.

Finalizers, status and other metadata that the cluster has set are removed. All other
lines of the files stay as they are, with their comments. Maps in one line that
change, as in JSON, become several. Differences are reported on stderr.`,
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
	_, findings := load(all, nil) // an error in the input would also be in the result
	var out bytes.Buffer
	var notes []string
	if len(findings) == 0 {
		for _, f := range all {
			fileNotes, err := convertFile(&out, f)
			if err != nil {
				found, isFinding := errors.AsType[finding.Finding](err)
				if !isFinding {
					found.Cause = f.Name + ": " + err.Error()
				}
				findings = append(findings, found)
			}
			notes = append(notes, fileNotes...)
		}
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

// convertFile writes a file with its Configurations converted, and returns notes on
// what differs in the result.
func convertFile(out *bytes.Buffer, f *manifest.File) (notes []string, err error) {
	before := 0
	for i, document := range source.Split(f.Data) {
		if out.Len() > 0 && !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
			out.WriteString("\n")
		}
		if i == 0 && out.Len() > 0 && !bytes.HasPrefix(document, []byte("---")) {
			out.WriteString("---\n") // after another file
		}
		text, documentNotes, err := convertDocument(string(document))
		if found, ok := errors.AsType[finding.Finding](err); ok {
			found.File, found.Line = f.Name, found.Line+before
			return nil, found
		} else if err != nil {
			return nil, err
		}
		before += bytes.Count(document, []byte("\n"))
		out.WriteString(text)
		notes = append(notes, documentNotes...)
	}
	return notes, nil
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

func encode(root *yamlv3.Node) (string, error) {
	var out bytes.Buffer
	encoder := yamlv3.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	err := errors.Join(encoder.Encode(root), encoder.Close())
	return out.String(), err
}

// convertDocument returns a document with its Configurations converted. Other kinds, and all
// other lines, are as they were.
func convertDocument(text string) (converted string, notes []string, err error) {
	var document yamlv3.Node
	if err := yamlv3.Unmarshal([]byte(text), &document); err != nil || len(document.Content) == 0 {
		return text, nil, err
	}
	root := document.Content[0]
	if items := elements(root); len(items) != 1 || items[0] != root {
		return convertItems(items)
	}
	version := get(root, "apiVersion")
	if kind := get(root, "kind"); kind == nil || kind.Value != "Configuration" ||
		version != nil && !manifest.IsAkri(map[string]any{"apiVersion": version.Value}) {
		return text, nil, nil
	}
	e := &editor{root: root, lines: line.FindAllString(text, -1)}
	e.dropServerFields()
	notes, err = e.modernize()
	if err != nil {
		return "", nil, err
	}
	lists, name, err := convertFields(root)
	if err != nil {
		return "", nil, err
	}
	var object struct {
		Spec map[string]any `yaml:"spec"`
	}
	if err := root.Decode(&object); err != nil {
		return "", nil, err
	}
	if len(lists.Instance)+len(lists.Configuration) > 0 {
		for _, field := range []string{"brokerSpec", "instanceServiceSpec", "configurationServiceSpec"} {
			if commented(get(root, "spec"), field) {
				notes = append(notes, field+": its comments are lost: copy them manually")
			}
			e.replace("", "spec", field)
		}
		err := errors.Join(e.add(templating.InstanceLevel, lists.Instance), e.add(templating.ConfigurationLevel, lists.Configuration))
		if err != nil {
			return "", nil, err
		}
	}
	for _, d := range convert.Doubts(object.Spec, name) {
		notes = append(notes, d.In("").Error())
	}
	for _, r := range slices.Concat(lists.Instance, lists.Configuration) {
		notes = append(notes, r.From.String()+": "+differs[r.From.String()])
	}
	switch {
	case e.edited && len(e.flow) > 0:
		for _, n := range e.flow {
			n.Style &^= yamlv3.FlowStyle
		}
		if text, err = encode(root); err == nil {
			converted, _, err = convertDocument(text)
		}
	case e.edited:
		converted, err = e.result()
	default:
		converted, notes = text, []string{"nothing to convert"}
	}
	for i, note := range notes {
		notes[i] = cmp.Or(name, "Configuration") + ": " + note
	}
	return converted, notes, err
}

// convertItems returns the items of a List as documents.
func convertItems(items []*yamlv3.Node) (converted string, notes []string, err error) {
	for i, item := range items {
		text, err := encode(item)
		if err != nil {
			return "", nil, err
		}
		text, itemNotes, err := convertDocument(text)
		if err != nil {
			return "", nil, err
		}
		if i > 0 {
			converted += "---\n"
		}
		converted, notes = converted+text, append(notes, itemNotes...)
	}
	return converted, notes, nil
}

// convertFields returns the broker resources that the old fields of a Configuration become,
// and its name.
func convertFields(root *yamlv3.Node) (lists convert.Lists, name string, err error) {
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
	if err := root.Decode(&object); err != nil {
		return lists, "", err
	}
	lists, err = convert.BrokerResources(convert.Fields{
		BrokerPodSpec: object.Spec.BrokerSpec.BrokerPodSpec, BrokerJobSpec: object.Spec.BrokerSpec.BrokerJobSpec,
		InstanceServiceSpec: object.Spec.InstanceServiceSpec, ConfigurationServiceSpec: object.Spec.ConfigurationServiceSpec,
	})
	return lists, object.Metadata.Name, err
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
