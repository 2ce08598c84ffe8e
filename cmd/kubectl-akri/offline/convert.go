package offline

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
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
		Short: "Convert fields of the original Akri to the current ones",
		Long: `Convert a Configuration's brokerSpec, instanceServiceSpec and
configurationServiceSpec to instanceBrokerResources and
configurationBrokerResources that create the same objects. These fields remain
supported; you do not have to convert them.

Configurations of older versions of Akri must be converted: protocol (before 0.4)
becomes discoveryHandler, properties becomes brokerProperties, brokerPodSpec or
brokerJobSpec in spec is converted like one in brokerSpec, and units is removed.

Finalizers, status and other metadata that the cluster has set are removed. All other
lines of the files stay as they are, with their comments. A map in one line, as in
JSON, is split into several lines if it changes. Differences are reported on stderr.`,
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
	inputs, findings := load(all, cases.Options{}) // an error in the input would also be in the result
	var out bytes.Buffer
	var notes []string
	for i := 0; i < len(all) && len(findings) == 0; i++ {
		fileNotes, err := convertFile(&out, all[i].Data)
		if err != nil {
			found, _ := errors.AsType[finding.Finding](err)
			found.File, found.Cause = all[i].Name, cmp.Or(found.Cause, err.Error())
			findings = append(findings, found)
		}
		notes = append(notes, fileNotes...)
	}
	if count := manifest.Show(streams.Err, findings, all); count > 0 {
		return errFound(count, "; nothing was printed")
	}
	for _, in := range inputs {
		objects, mistakes := in.Objects()
		manifest.Show(streams.Err, manifest.Sort(advise(in, objects, mistakes), all), all)
	}
	for _, note := range notes {
		fmt.Fprintln(streams.Err, "note: "+note)
	}
	_, err = cli.Exact(streams.Out).Write(out.Bytes())
	return err
}

// convertFile writes a file with its Configurations converted, and returns notes on
// what differs in the result.
func convertFile(out *bytes.Buffer, data []byte) (notes []string, err error) {
	before := 0
	for i, document := range source.Split(data) {
		if out.Len() > 0 && !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
			out.WriteString("\n")
		}
		if i == 0 && out.Len() > 0 && !bytes.HasPrefix(document, []byte("---")) {
			out.WriteString("---\n") // after another file
		}
		documentNotes, err := convertDocument(out, string(document))
		if found, ok := errors.AsType[finding.Finding](err); ok {
			found.Line += before
			return nil, found
		} else if err != nil {
			return nil, err
		}
		before += bytes.Count(document, []byte("\n"))
		notes = append(notes, documentNotes...)
	}
	return notes, nil
}

func encode(root *yamlv3.Node) (string, error) {
	var out bytes.Buffer
	encoder := yamlv3.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	err := errors.Join(encoder.Encode(root), encoder.Close())
	return out.String(), err
}

// convertDocument writes a document with its Configurations converted, and returns notes on
// what differs. Other kinds, and all other lines, are as they were.
func convertDocument(out *bytes.Buffer, text string) (notes []string, err error) {
	var document yamlv3.Node
	parsed, err := source.Parse("", []byte(text))
	if err == nil {
		err = yamlv3.Unmarshal([]byte(text), &document)
	}
	if err != nil || len(parsed) == 0 {
		out.WriteString(text)
		return nil, err
	}
	root, object := document.Content[0], parsed[0].Object()
	kind, items := get(root, "kind"), get(root, "items")
	switch {
	case kind != nil && strings.HasSuffix(kind.Value, "List") && items != nil && items.Kind == yamlv3.SequenceNode: // as kubectl get prints it
		for _, item := range items.Content {
			text, err := encode(item)
			if err != nil {
				return nil, err
			}
			itemNotes, err := convertFile(out, []byte(text))
			if err != nil {
				return nil, err
			}
			notes = append(notes, itemNotes...)
		}
		return notes, nil
	case textAt(object, "kind") != "Configuration" || !manifest.IsAkri(object):
		out.WriteString(text)
		return nil, nil
	}
	name := textAt(object, "metadata", "name")
	e := &editor{root: root, lines: line.FindAllString(text, -1)}
	notes, err = e.convert(object["spec"])
	switch {
	case err != nil:
		return nil, err
	case e.edited && len(e.flow) > 0:
		for _, n := range e.flow {
			n.Style &^= yamlv3.FlowStyle
		}
		if text, err = encode(root); err == nil {
			_, err = convertDocument(out, text)
		}
	case e.edited:
		text = strings.Join(e.lines, "")
		_, err = source.Parse("", []byte(text))
		if invalid, ok := errors.AsType[*source.SyntaxError](err); ok { // an alias to a removed field
			err = errorAt(root, "the result would not be valid YAML: "+invalid.Err.Error(), withoutAnchors)
		}
		out.WriteString(text)
	default:
		out.WriteString(text)
		notes = []string{"nothing to convert"}
	}
	for i, note := range notes {
		notes[i] = cmp.Or(name, "Configuration") + ": " + note
	}
	return notes, err
}

// oldFields are the fields of a spec that are converted.
var oldFields = []string{"brokerSpec", "brokerPodSpec", "brokerJobSpec", "instanceServiceSpec", "configurationServiceSpec"}

// convert replaces the fields of a spec.
func (e *editor) convert(value any) (notes []string, err error) {
	e.dropServerFields()
	notes, err = e.modernize()
	if err != nil {
		return nil, err
	}
	spec, _ := value.(map[string]any)
	fields := maps.Clone(spec) // with those of a broker, as in older versions
	var wrong error
	field := func(key string) map[string]any {
		value, isMap := fields[key].(map[string]any)
		if !isMap && fields[key] != nil {
			wrong = errorAt(e.root, key+" must be a map", "kubectl akri lint shows where")
		}
		return value
	}
	maps.Copy(fields, field("brokerSpec"))
	lists, err := convert.BrokerResources(convert.Fields{
		BrokerPodSpec: field("brokerPodSpec"), BrokerJobSpec: field("brokerJobSpec"),
		InstanceServiceSpec: field("instanceServiceSpec"), ConfigurationServiceSpec: field("configurationServiceSpec"),
	})
	if err = errors.Join(wrong, err); err != nil || len(lists.Instance)+len(lists.Configuration) == 0 {
		return notes, err
	}
	place := -1 // of the first of them
	for _, key := range oldFields {
		if spec[key] != nil && get(get(e.root, "spec"), key) == nil {
			return nil, errorAt(e.root, key+" is written elsewhere", withoutAnchors)
		}
		if from, _, found := e.span("spec", key); found && place < 0 {
			place = from
		}
		if comment.MatchString(e.replace("", "spec", key)) {
			notes = append(notes, key+": its comments are lost: copy them manually")
		}
	}
	for _, r := range slices.Concat(lists.Instance, lists.Configuration) {
		notes = append(notes, r.From.String()+": "+differs[r.From.String()])
	}
	return notes, errors.Join(
		e.add(place, templating.InstanceLevel, lists.Instance),
		e.add(place, templating.ConfigurationLevel, lists.Configuration),
	)
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
